// SPDX-License-Identifier: Apache-2.0
//
// plumb agreement --plugin BASE --plugin CHANGE: compares two implementations, for the review of a
// kernel. With one --plugin, the base is plumb's own kernel.
#pragma once

#include "tools/commands.h"

namespace plumb::tools {

// Returns 1 if a difference is larger than two right results may have, or if a result is wrong; 2
// if no case could be compared; else 0.
int plugin_agreement(const AgreementArguments& arguments);

}  // namespace plumb::tools
