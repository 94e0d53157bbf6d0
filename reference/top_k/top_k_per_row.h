// SPDX-License-Identifier: Apache-2.0
//
// Code shared by both top-k operations (operations' specification, 4.1): the order of fp32 bit
// patterns, the canonical selection from one window of logits, and the check of a kernel's
// selection. A kernel may take any of several equal keys at the threshold, and may return the
// winners in any order. Logits of bf16 have the keys of the fp32 numbers with the same values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb::reference {

// Position of a logit in the order -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
std::uint32_t order_key(float logit);

// all_top: all NaN are equal and above +inf. sign_ordered: as order_key. unspecified: as all_top,
// but from a window with a NaN any selection is right.
enum class NanOrder { all_top, sign_ordered, unspecified };

// The logits that one row selects from. Local index i is element i * column_stride of `first`.
struct LogitWindow {
  const void* first = nullptr;  // fp32, or bf16
  std::int64_t column_stride = 1;
  std::int64_t length = 0;  // >= 0
  NanOrder nan_order = NanOrder::sign_ordered;
  bool zeros_are_equal = false;  // -0 and +0 have equal keys
  bool bf16 = false;

  float logit(std::int64_t local) const;        // exact
  std::uint32_t key(std::int64_t local) const;  // the number that selections compare
};

// The address of an element of logits in bf16 or fp32.
const void* logit_address(const void* logits, bool bf16, std::int64_t element);

// True if the window has a NaN and the order of NaN is unspecified. Then any k different indices of
// the window are right, and -1 may replace any of them.
bool is_free(const LogitWindow& window, std::int32_t k);

// Writes k indices. If length <= k: 0..length-1, then -1. Otherwise the k largest keys in
// descending order, equal keys by ascending index.
void select_top_k(const LogitWindow& window, std::int32_t k, std::int32_t* indices);
// Selects for every row, in parallel. Returns [windows.size(), k].
std::vector<std::int32_t> select_top_k(const std::vector<LogitWindow>& windows, std::int32_t k);

enum class SelectionError {
  hole,          // -1 among the first min(length, k) places
  out_of_range,  // neither -1 nor in [0, length)
  repeated,      // an index that was already used
  loser,         // a larger key was left out instead
  not_identity,  // length <= k: place i must hold i
  dirty_tail     // not -1 after the first min(length, k) places
};
std::string_view name_of(SelectionError error);

struct WrongPlace {
  std::int64_t place = 0;  // in [0, k)
  SelectionError error = SelectionError::hole;
  std::int32_t expected = 0;  // required index, or one of the winners that were left out
};
// Every wrong place of one row, ascending. Empty if the selection is right.
std::vector<WrongPlace> check_selection(const LogitWindow& window, std::int32_t k,
                                        const std::int32_t* indices);
// Checks every row of contiguous indices [windows.size(), k], in parallel.
std::vector<std::vector<WrongPlace>> check_selection(const std::vector<LogitWindow>& windows,
                                                     std::int32_t k, const std::int32_t* indices);

}  // namespace plumb::reference
