// SPDX-License-Identifier: Apache-2.0
//
// The whole life of the process that loads a plug-in.
#pragma once

#include <string>

#include "device/remote/socket.h"

namespace plumb::device::remote {

// Loads the library, says over `control` what it has or why it cannot be used, and serves what
// comes. Returns when the other end hangs up or the library was refused: then the caller ends the
// process at once, because threads of the plug-in may still run.
void serve_plugin(const std::string& library, const OwnedDescriptor& control);

}  // namespace plumb::device::remote
