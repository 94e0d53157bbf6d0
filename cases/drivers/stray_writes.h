// SPDX-License-Identifier: Apache-2.0
//
// Detects forbidden writes of a launch: between the rows of an output, or into an input.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// The elements between rows must be unchanged: they hold poison, or the values of `before`. Appends
// a line if not.
void check_gaps(const HostTensor& tensor, const HostTensor* before, Poison poison,
                std::vector<std::string>& lines);

// Appends a line if the bytes `got` differ from those of `given`.
void check_unchanged(const HostTensor& given, const Bytes& got, std::vector<std::string>& lines);

}  // namespace plumb::cases
