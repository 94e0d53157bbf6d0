// SPDX-License-Identifier: Apache-2.0
//
// plumb bench --plugin: what an op takes, beside the op's floor and beside plumb's own kernel or a
// second plug-in's. The outputs of the launches that are timed are judged: a wrong kernel has no
// figure.
#pragma once

#include "tools/commands.h"

namespace plumb::tools {

// Exit code 1 if a result is wrong, 2 if nothing could be timed.
int bench_plugin(const BenchArguments& arguments);

}  // namespace plumb::tools
