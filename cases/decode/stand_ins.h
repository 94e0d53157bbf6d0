// SPDX-License-Identifier: Apache-2.0
//
// What stands beside ops in a decode step (device/decode/stand_ins.h), worked out again on the
// host. It is exact, so every bit is compared.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/decode/call_record.h"
#include "cases/judge.h"
#include "cases/tensor.h"

namespace plumb::cases {

class StandIn {
 public:
  explicit StandIn(const device::decode::Call& call);  // of linear_map or seeded_rows
  TensorSet make_tensors() const;                      // "in" and "out"
  std::vector<Binding> bindings() const;
  std::vector<TensorReport> judge(const TensorSet& tensors) const;

 private:
  float mapped(const TensorSet& tensors, std::int64_t row, std::int64_t column) const;
  float seeded(const TensorSet& tensors, std::int64_t row, std::int64_t column) const;

  bool maps_;  // else the rows are made from keys
  const void* in_;
  const void* out_;
  Dtype in_dtype_, out_dtype_;
  std::int64_t rows_, in_columns_, out_columns_;
  std::uint64_t seed_;
};

}  // namespace plumb::cases
