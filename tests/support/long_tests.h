// SPDX-License-Identifier: Apache-2.0
//
// Long tests (minutes) run only with PLUMB_FULL=1 in the environment.
#pragma once

#include <cstdlib>
#include <string_view>

namespace plumb::tests {

inline bool long_tests_run() {
  const char* full = std::getenv("PLUMB_FULL");
  return full != nullptr && std::string_view(full) == "1";
}

inline constexpr const char* kTakesMinutes =
    "takes minutes; runs with PLUMB_FULL=1 in the environment";

}  // namespace plumb::tests
