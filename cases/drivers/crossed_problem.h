// SPDX-License-Identifier: Apache-2.0
//
// A case whose inputs, launch and verdict have different values of the op's choices. So runs a
// kernel that does what its parameters do not say, and so is it judged under what it could declare.
#pragma once

#include <memory>

#include "cases/tables/problem.h"

namespace plumb::cases {

// Three problems of one op at one shape. Tensors that some of them lack are there for the others.
// Throws BadRow where a tensor has two layouts.
std::unique_ptr<Problem> cross(std::unique_ptr<Problem> filled, std::unique_ptr<Problem> launched,
                               std::unique_ptr<Problem> judged);

}  // namespace plumb::cases
