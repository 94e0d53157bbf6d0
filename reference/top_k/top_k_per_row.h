// SPDX-License-Identifier: Apache-2.0
//
// What both top-k operations share (operations' specification, 4.1): the order of fp32 bit
// patterns, the canonical selection from one window of logits, and the check of a selection made by
// others. Which of several equal keys at the threshold are taken is free, and so is the order of
// the winners.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb::reference {

// Position of a logit in  -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
std::uint32_t order_key(float logit);

// all_top: every NaN is above +inf, and all are equal. sign_ordered: as order_key. unspecified: as
// all_top, but a selection from a window with NaN is free.
enum class NanOrder { all_top, sign_ordered, unspecified };

// The logits that one row may look at. Local index i is first[i * column_stride].
struct LogitWindow {
  const float* first = nullptr;
  std::int64_t column_stride = 1;
  std::int64_t length = 0;  // >= 0
  NanOrder nan_order = NanOrder::sign_ordered;
  bool zeros_are_equal = false;  // -0 is +0

  float logit(std::int64_t local) const { return first[local * column_stride]; }
  std::uint32_t key(std::int64_t local) const;  // what is ordered
};

// Whether any k indices of the window are right, none twice, and -1 in the place of any: NaN is in
// the window, and its order unspecified.
bool is_free(const LogitWindow& window, std::int32_t k);

// Writes k indices: 0..length-1 and then -1 where length <= k, whatever the values; otherwise the k
// largest keys, descending, equal keys by ascending index.
void select_top_k(const LogitWindow& window, std::int32_t k, std::int32_t* indices);
// The same for every row, in parallel: [windows.size(), k].
std::vector<std::int32_t> select_top_k(const std::vector<LogitWindow>& windows, std::int32_t k);

enum class SelectionError {
  hole,          // -1 among the first min(length, k) places
  out_of_range,  // neither -1 nor in [0, length)
  repeated,      // an index for the second time
  loser,         // a larger key was left out for it
  not_identity,  // length <= k: place i must hold i
  dirty_tail     // anything but -1 behind the first min(length, k) places
};
std::string_view name_of(SelectionError error);

struct WrongPlace {
  std::int64_t place = 0;  // in [0, k)
  SelectionError error = SelectionError::hole;
  std::int32_t expected = 0;  // what has to be there; for a loser and the like, a winner left out
};
// Every wrong place of one row, ascending; empty = a legal answer.
std::vector<WrongPlace> check_selection(const LogitWindow& window, std::int32_t k,
                                        const std::int32_t* indices);
// The same for every row of contiguous indices [windows.size(), k], in parallel.
std::vector<std::vector<WrongPlace>> check_selection(const std::vector<LogitWindow>& windows,
                                                     std::int32_t k, const std::int32_t* indices);

}  // namespace plumb::reference
