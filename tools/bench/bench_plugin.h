// SPDX-License-Identifier: Apache-2.0
//
// plumb bench --plugin: the time of an op beside its floor and the time of plumb's own kernel or of
// a second plug-in. The outputs of the timed launches are judged: a wrong kernel gets no time.
#pragma once

#include "tools/commands.h"

namespace plumb::tools {

// Returns 1 if a result of the plug-in under test (the last one named) is wrong, or its process
// died; 2 if none of its launches could be timed; else 0.
int bench_plugin(const BenchArguments& arguments);

}  // namespace plumb::tools
