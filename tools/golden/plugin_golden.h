// SPDX-License-Identifier: Apache-2.0
//
// Goldens of a plug-in's kernels. The plug-in has one process, so these functions are not
// thread-safe. A case may end that process: the next one starts another.
#pragma once

#include <string>

#include "golden/compare.h"
#include "golden/regenerate.h"
#include "tools/golden/golden_check.h"

namespace plumb::tools {

// For golden::difference_of. A case without a result is rejected with the reason; one that the
// plug-in does not support has no golden. `plugin`: its path.
golden::Compute compute_plugin(const cases::Case& which, const std::string& platform,
                               const std::string& plugin);

// GoldenChecker::check with the plug-in's kernels. A case without a result fails.
golden::GoldenComparison check_plugin(const cases::Case& which, const std::string& platform,
                                      const std::string& plugin, bool exact,
                                      GoldenChecker& checker);

}  // namespace plumb::tools
