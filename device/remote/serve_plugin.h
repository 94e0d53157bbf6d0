// SPDX-License-Identifier: Apache-2.0
//
// Main functions of the process that loads a plug-in.
#pragma once

#include <optional>
#include <string>

#include "device/remote/server.h"
#include "device/remote/socket.h"

namespace plumb::device::remote {

// Loads the library, reports over `control` what it has or why it cannot be used, and serves
// requests. Returns when the other end hangs up, or if the library was refused. The caller then has
// to end the process at once, because threads of the plug-in may still run.
void serve_plugin(const std::string& library, const OwnedDescriptor& control);
// As serve_plugin(), for an implementation that is not loaded from a library.
void serve_implementation(Introduction about, OpenDevice open, const OwnedDescriptor& control);

// The control socket, which is standard input of such a process. Afterwards standard input is
// empty, and all descriptors above standard error are closed: through a channel of the judging
// process a plug-in could answer in its place. Empty result: standard input is no socket.
std::optional<OwnedDescriptor> take_control();

}  // namespace plumb::device::remote
