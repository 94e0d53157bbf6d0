// SPDX-License-Identifier: Apache-2.0
//
// The difference of two results of one case, tensor by tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/capture.h"
#include "golden/model.h"

namespace plumb::golden {

// A stored element that moved.
struct MovedElement {
  std::int64_t row = 0, column = 0;
  double was = 0, is = 0, ulp = 0;
};

// Distance of one output from its golden.
struct TensorDrift {
  std::string tensor;
  std::int64_t rows = 0, rows_moved = 0;
  // counts over elements with stored values
  std::int64_t elements = 0, elements_moved = 0;
  double ulp = 0;  // largest distance: ulp of floats, difference of codes or of integers
  // Largest distance beyond final rounding, as a share of the largest arithmetic difference of two
  // right results; -1: no bound, or no moved element with a stored value.
  double of_bound = -1;
  std::string where;                        // place of the largest distance, with both values
  std::array<std::int64_t, 8> histogram{};  // of distances; kHistogram names the columns
  bool moved() const { return rows_moved > 0 || !other.empty(); }
  std::string other;            // difference of shape, type or format, if any
  std::string moved_rows = {};  // "1-3, 7, …"
  // stored elements with the largest distances in descending order, at most kMostMoved
  std::vector<MovedElement> largest = {};
  // statistics of all elements; nullopt if a golden has neither all values nor a sketch
  std::optional<TensorStatistics> was = {}, is = {};
  // L2 norm of the difference over all elements; -1: unknown. If a side lacks values, the norm is
  // an estimate, and `columns` ("0-1023") limits its place; "": all columns.
  double difference = -1;
  bool estimated = false;
  std::string columns = {};
  bool rejected = false;  // by the reference; reports then leave out of_bound
  // The rows are steps and the elements are calls of them, with a digest each: a distance means
  // nothing. `where` is the first call that moved.
  bool of_calls = false;
};
inline constexpr std::size_t kMostMoved = 8;
inline constexpr std::array<std::string_view, 8> kHistogram = {"1",    "2",     "3-4",  "5-8",
                                                               "9-16", "17-64", "more", "NaN"};

// All differences between a golden and another result. With `capture`, the distances are put in
// relation to its bounds.
std::vector<TensorDrift> drift_between(const CaseGolden& golden, const CaseGolden& other,
                                       const GoldenCapture* capture = nullptr);
// "out: 3 of 4 rows moved (0-2), 812 of 2048 stored elements, at most 1 ulp, 0.31 of the bound; row
// 0, column 7: was 0.501, is 0.502; in L2 norm about 0.012 of 90.79"
std::string text_of(const TensorDrift& drift);
// "ulp 1: 800, 2: 12"
std::string histogram_text(const TensorDrift& drift);

}  // namespace plumb::golden
