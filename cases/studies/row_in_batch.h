// SPDX-License-Identifier: Apache-2.0
//
// One row of an op in batches of different sizes. It is moved from one problem to another by the
// shapes of their tensors: what grows in proportion to the batch belongs to rows, of which one is
// overwritten with the row under test; everything else (weights, caches) is that of the largest
// problem.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// Why the rows of an op cannot be moved.
class NotMeasured : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The parameter to which the op's capacity is proportional: "tokens".
std::string find_batch_parameter(const OpDefinition& op, const Row& row,
                                 const device::Properties& properties);

class RowInBatch {
 public:
  RowInBatch(const OpDefinition& op, const Row& row, std::string batch, std::int64_t largest,
             Fill fill, const RunOptions& options);

  // The row's own part of each output that has one, from a call with the row first or last in a
  // batch of `size`. What stands beside it differs from size to size.
  std::vector<std::vector<std::byte>> run(std::int64_t size, bool last) const;
  // These outputs, as they are in a batch of one.
  std::vector<TensorSpec> outputs() const;

 private:
  enum class Scope { row, shared, other };  // how a tensor depends on the batch

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
  TensorSet base_;  // of the largest size; its first row is the one under test
  std::vector<std::pair<std::string, Scope>> scopes_;
};

}  // namespace plumb::cases
