// SPDX-License-Identifier: Apache-2.0
//
// A step: one set of inputs of a problem, with the fill of live rows and the contents of padding.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb::cases {

enum class Fill {
  exact,       // every right result has the same bits, or an exactly known value
  real,        // realistic magnitudes, rows of very different norm, outliers
  adversarial  // values that implementations of this op are known to get wrong
};
enum class DeadRows { zero, nan, infinity, huge, foreign };
std::string_view name_of(Fill fill);
std::string_view name_of(DeadRows dead);

// One set of inputs. Rows [live, capacity) are padding.
struct Step {
  std::uint64_t seed = 0;
  std::int64_t live = 0;
  Fill fill = Fill::real;
  DeadRows dead_rows = DeadRows::zero;
};

}  // namespace plumb::cases
