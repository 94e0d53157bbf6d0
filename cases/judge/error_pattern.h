// SPDX-License-Identifier: Apache-2.0
//
// Describes in a sentence what wrong rows look like. For readers of a report only: no verdict
// depends on the sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cases/judge/judge.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

using WrongElements = std::vector<std::uint8_t>;  // row-major, 1 where an element is wrong

struct Evidence {
  const HostTensor& got;
  const std::vector<double>& expected;                    // row-major
  std::function<double(std::int64_t element)> tolerance;  // 0 for integers
  const std::vector<std::int64_t>& wrong_rows;            // ascending, not empty
  const WrongElements& wrong;
};

// The sentence for the pattern that fits nearly all wrong rows; "" if no known one does.
std::string error_pattern(const Evidence& evidence);

}  // namespace plumb::cases
