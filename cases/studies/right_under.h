// SPDX-License-Identifier: Apache-2.0
//
// Under which other declarations a failed case is right. The bytes of its first failed verdict are
// judged under each, without a launch. Where they are right the case runs twice more: as it is but
// for the verdict, and as if the implementation had declared the other values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Has the case failed, and nothing but the values of its tensors is wrong?
bool fails_by_values(const CaseResult& result);

// Of a result of this case, with `options` as they were when it ran. What the other declaration
// does not promise of an output has to be untouched. Empty where more than values is wrong, and for
// tensors that are too large to be kept.
std::vector<Alternative> right_under(const Case& which, const CaseResult& result,
                                     const RunOptions& options);

// Of a failed case that is right under no declaration: values of choices under which it passes. Its
// inputs are others then, or what is wrong is open. A kernel of such a value says so in no bytes.
// Empty on a real device where more than values is wrong: its state is not to be trusted then.
std::vector<Alternative> passes_under(const Case& which, const CaseResult& result,
                                      const RunOptions& options);

// Sets the result's right_under, or passes_under where there is none.
void find_declarations(const Case& which, const RunOptions& options, CaseResult& result);

// Says of an element whether it holds what it held before the launch.
using IsUntouched =
    std::function<bool(const HostTensor& tensor, std::int64_t row, std::int64_t column)>;
// Is every element that only `present` promises untouched?
bool leaves_rest_alone(const Expectations& present, const Expectations& other,
                       const IsUntouched& is_untouched);

}  // namespace plumb::cases
