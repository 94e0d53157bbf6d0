// SPDX-License-Identifier: Apache-2.0
//
// Finds other declarations under which a failed case is right. First the bytes of its first failed
// verdict are judged under each, without a launch. If they are right, the case runs again: launched
// as before and judged under the alternative (not if only numerics change), and then as if the
// implementation had declared the alternative.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// True if the case has failed only by values of tensors (no damage, no device error).
bool fails_by_values(const CaseResult& result);

// The declarations under which a failed case is right. `options`: those with which `result` was
// obtained. An output element that the other declaration does not promise must be untouched. Empty
// if more than values is wrong, or if tensors are too large to be kept.
std::vector<Alternative> right_under(const Case& which, const CaseResult& result,
                                     const RunOptions& options);

// For a failed case that is right under no declaration: values of choices under which it passes,
// because they bring other inputs or leave the wrong part open. The stored bytes cannot show
// whether the kernel has such a value. Empty on a real device if more than values is wrong, because
// its state is then unreliable.
std::vector<Alternative> passes_under(const Case& which, const CaseResult& result,
                                      const RunOptions& options);

// Sets result.right_under; if that is empty, sets result.passes_under.
void find_declarations(const Case& which, const RunOptions& options, CaseResult& result);

// Returns true if an element holds what it held before the launch.
using IsUntouched =
    std::function<bool(const HostTensor& tensor, std::int64_t row, std::int64_t column)>;
// True if every element that `present` promises and `other` does not is untouched.
bool leaves_rest_alone(const Expectations& present, const Expectations& other,
                       const IsUntouched& is_untouched);

}  // namespace plumb::cases
