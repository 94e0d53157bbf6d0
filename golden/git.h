// SPDX-License-Identifier: Apache-2.0
//
// Asks git about the folder of a store.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plumb::golden {

// Standard output of "git -C folder arguments…"; nullopt if git fails or is not installed.
std::optional<std::string> ask_git(const std::string& folder,
                                   const std::vector<std::string>& arguments);

// The checked-out commit, with "+" appended if tracked files other than goldens differ from it;
// "unknown" outside of a repository.
std::string commit_of(const std::string& folder);

}  // namespace plumb::golden
