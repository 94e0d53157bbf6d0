// SPDX-License-Identifier: Apache-2.0
//
// The rows of a call (its tokens, its requests): which part of each tensor belongs to each of them.
// A row with the same inputs in another call is the same request's, wherever it stands.
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

// Elements of one row of a tensor's last dimension.
struct RowSegment {
  std::int64_t row = 0, begin = 0, count = 0;
};

class CallRows {
 public:
  // Nothing: the op has no rows with places of their own, or not at this call's shapes.
  static std::optional<CallRows> of(const OutsideCall& call);

  std::int64_t count() const { return count_; }
  // Of a row: what it reads, and what all rows share (weights, tables, numbers). Calls of one op
  // compare.
  std::vector<RowDigest> inputs() const;
  // Of a row: what it wrote into outputs that have rows.
  std::vector<RowDigest> outputs() const;
  // Of a tensor that has rows, cut down to one of them.
  std::vector<std::int64_t> shape_of_row(const std::string& tensor) const;
  // None: the tensor has no rows.
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
  std::map<std::string, RowAxis, std::less<>> axes_;  // of tensors that have rows
};

}  // namespace plumb::cases
