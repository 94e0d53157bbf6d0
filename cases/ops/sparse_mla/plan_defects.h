// SPDX-License-Identifier: Apache-2.0
//
// Reports what is wrong with a plan that is judged by its promises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/judge/judge.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct PlanDefect {
  std::int64_t row = -1;  // of the stored tensor; -1: of no row
  std::string text;
};

// Writes at least one defect to the report: three in words, the rows of all, and how many of these
// rows nobody wrote. `rows_are`: what a row is, in the plural.
void report_defects(const HostTensor& stored, const std::vector<PlanDefect>& defects,
                    std::string_view rows_are, TensorReport& report);

}  // namespace plumb::cases
