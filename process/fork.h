// SPDX-License-Identifier: Apache-2.0
//
// fork() on a thread that lives as long as this process.
#pragma once

#include <sys/types.h>

#include <functional>

namespace plumb::process {

// Forks, and calls `in_child` in the child, which must not return. The kernel ends a child with
// PR_SET_PDEATHSIG when the thread that forked it ends, so one lasting thread forks all of them.
// Throws std::system_error.
pid_t fork_from_lasting_thread(const std::function<void()>& in_child);
// Number of calls of fork_from_lasting_thread in this process.
int lasting_forks();

}  // namespace plumb::process
