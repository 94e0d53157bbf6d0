// SPDX-License-Identifier: Apache-2.0
//
// The whole life of the process that loads a plug-in.
#pragma once

#include <optional>
#include <string>

#include "device/remote/server.h"
#include "device/remote/socket.h"

namespace plumb::device::remote {

// Loads the library, says over `control` what it has or why it cannot be used, and serves what
// comes. Returns when the other end hangs up or the library was refused: then the caller ends the
// process at once, because threads of the plug-in may still run.
void serve_plugin(const std::string& library, const OwnedDescriptor& control);
// The same for an implementation that this process has without a library.
void serve_implementation(Introduction about, OpenDevice open, const OwnedDescriptor& control);

// The control socket, which is standard input of such a process. Standard input becomes empty, and
// all descriptors above standard error are closed: a channel of the process that judges would let
// a plug-in answer in its place. Nothing: standard input is no socket.
std::optional<OwnedDescriptor> take_control();

}  // namespace plumb::device::remote
