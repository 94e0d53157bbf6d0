// SPDX-License-Identifier: Apache-2.0
//
// Puts one row of an op into batches of different sizes. Tensors whose first dimension is
// proportional to the batch consist of rows: one of their rows is overwritten with the row under
// test. All other inputs (weights, caches) are taken from the largest batch.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// The message says why the rows of an op cannot be moved.
class NotMeasured : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RowInBatch {
 public:
  RowInBatch(const OpDefinition& op, const Row& row, std::string batch, std::int64_t largest,
             Fill fill, const RunOptions& options);

  // Bytes of the row in each output that has rows, from a launch with the row first or last in a
  // batch of `size`. The other rows of the batch differ from size to size.
  std::vector<std::vector<std::byte>> run(std::int64_t size, bool last) const;
  // Specs of these outputs in a batch of one.
  std::vector<TensorSpec> outputs() const;

 private:
  // How a tensor depends on the batch. row: it has one part per row. shared: all rows use the whole
  // tensor. other: neither.
  enum class Scope { row, shared, other };

  std::unique_ptr<Problem> problem_of(std::int64_t size) const;
  Step step_of(std::int64_t size, std::int64_t salt) const;
  void classify();
  Scope scope_of(const HostTensor& one, const HostTensor& two, const HostTensor& most) const;
  Scope scope_of(std::string_view name) const;
  bool is_compared(const TensorSpec& spec) const;
  void put_in(HostTensor& tensor, std::int64_t size, std::int64_t position) const;
  void launch(const Problem& problem, TensorSet& tensors) const;

  const OpDefinition& op_;
  const Row& row_;
  const std::string batch_;
  const Fill fill_;
  const RunOptions& options_;
  device::Properties properties_;
  const device::OpEntry* entry_ = nullptr;
  std::int64_t largest_ = 0;
  std::uint64_t seed_ = 0;
  TensorSet base_;  // tensors of the largest batch; its first row is the row under test
  std::vector<std::pair<std::string, Scope>> scopes_;
};

}  // namespace plumb::cases
