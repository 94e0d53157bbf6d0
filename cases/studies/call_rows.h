// SPDX-License-Identifier: Apache-2.0
//
// Splits a call into rows (its tokens, its requests) and finds the part of each tensor that belongs
// to a row. A row of another call with the same inputs is the same request, at any position.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cases/studies/outside_call.h"
#include "cases/tensors/row_axis.h"

namespace plumb::cases {

using RowDigest = std::array<std::uint64_t, 2>;  // XXH3-128

// Adjacent elements of one row of a tensor's last dimension.
struct RowSegment {
  std::int64_t row = 0, begin = 0, count = 0;
};

class CallRows {
 public:
  // nullopt: the op's rows are not independent, or cannot be separated at this call's shapes.
  static std::optional<CallRows> of(const OutsideCall& call);

  std::int64_t count() const { return count_; }
  // A digest per row of its inputs and of everything that all rows share (weights, tables,
  // numbers). Digests of different calls of one op can be compared.
  std::vector<RowDigest> inputs() const;
  // A digest per row of what was written to outputs that have rows.
  std::vector<RowDigest> outputs() const;
  // The tensor's shape with one row only.
  std::vector<std::int64_t> shape_of_row(const std::string& tensor) const;
  // The elements of the tensor that belong to the row. Empty: the tensor has no rows.
  std::vector<RowSegment> segments(const std::string& tensor, std::int64_t row) const;

 private:
  CallRows(const OutsideCall& call, std::string parameter, std::int64_t count)
      : call_(&call), parameter_(std::move(parameter)), count_(count) {}
  bool find_axes();
  RowDigest shared_digest() const;
  std::vector<RowDigest> digests(Role role, const RowDigest& seed) const;

  const OutsideCall* call_;
  std::string parameter_;
  std::int64_t count_;
  std::map<std::string, RowAxis, std::less<>> axes_;  // row dimension of each tensor that has rows
};

}  // namespace plumb::cases
