// SPDX-License-Identifier: Apache-2.0
//
// What a launch wrote where it may not: between the rows of an output, and into an input.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Between its rows a tensor holds what it held before the launch: poison, or `before`. Else a line.
void check_gaps(const HostTensor& tensor, const HostTensor* before, Poison poison,
                std::vector<std::string>& lines);

// A line if `got` is not what was `given`.
void check_unchanged(const HostTensor& given, const Bytes& got, std::vector<std::string>& lines);

}  // namespace plumb::cases
