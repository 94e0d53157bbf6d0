// SPDX-License-Identifier: Apache-2.0
//
// A problem whose reference would cost too much, driven at its full size. Its rows are those of a
// small problem of the same op, each many times over, in a random order; the others are dead. All
// rows with the same inputs and the same bits of output are one: one of them is judged, and so all
// are. Nothing is taken for granted: what has the same inputs but other bits (another split of a
// sum, a wrong row) is judged by itself, as far as the sample's size goes.
#pragma once

#include <functional>
#include <memory>

#include "cases/tables/problem.h"

namespace plumb::cases {

// The same problem for any number of rows.
using MakeRows = std::function<std::unique_ptr<Problem>(std::int64_t rows)>;

// `sample`: rows that a verdict can afford; half of them are different.
std::unique_ptr<Problem> make_tiled_problem(const MakeRows& make, std::int64_t rows,
                                            std::int64_t sample);

}  // namespace plumb::cases
