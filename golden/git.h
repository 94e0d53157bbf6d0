// SPDX-License-Identifier: Apache-2.0
//
// What git knows of the folder that a store is in.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plumb::golden {

// Standard output of "git -C folder arguments…"; nothing if git fails or is not there.
std::optional<std::string> ask_git(const std::string& folder,
                                   const std::vector<std::string>& arguments);

// The commit that is checked out, with "+" behind it if tracked files other than goldens differ
// from it; "unknown" outside of a repository.
std::string commit_of(const std::string& folder);

}  // namespace plumb::golden
