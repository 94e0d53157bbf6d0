// SPDX-License-Identifier: Apache-2.0
//
// Runs a problem at full size although its reference is too expensive for all rows. Its rows repeat
// the rows of a small problem of the same op, in random order: live rows repeat live rows, and dead
// rows repeat dead rows. Rows with the same inputs and the same output bits form a group, and
// judging one row decides the whole group. Nothing is assumed: a row with the same inputs but other
// bits (a different split of a sum, a wrong row) forms its own group and is judged separately, as
// far as the sample's size allows.
#pragma once

#include <functional>
#include <memory>

#include "cases/tables/problem.h"

namespace plumb::cases {

// Makes the same problem for a given number of rows.
using MakeRows = std::function<std::unique_ptr<Problem>(std::int64_t rows)>;

// `sample`: number of rows that a verdict can afford. The small problem has half as many rows.
std::unique_ptr<Problem> make_tiled_problem(const MakeRows& make, std::int64_t rows,
                                            std::int64_t sample);

}  // namespace plumb::cases
