// SPDX-License-Identifier: Apache-2.0
//
// A case whose inputs, launch and verdict use different values of the op's choices (questions that
// right kernels answer differently). Used to run a kernel that ignores its parameters, and to judge
// a kernel under another declaration.
#pragma once

#include <memory>

#include "cases/tables/problem.h"

namespace plumb::cases {

// Combines three problems of one op and shape. A tensor that one of them lacks is taken from the
// others. Throws BadRow if a tensor has different layouts in two of them.
std::unique_ptr<Problem> cross(std::unique_ptr<Problem> filled, std::unique_ptr<Problem> launched,
                               std::unique_ptr<Problem> judged);

}  // namespace plumb::cases
