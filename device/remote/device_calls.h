// SPDX-License-Identifier: Apache-2.0
//
// Carries out each RemoteCall in the plug-in's process.
#pragma once

#include "device/remote/server.h"

namespace plumb::device::remote {

struct Context {
  Server& server;
  const SharedBuffer& buffer;
};

// Throws what the device or the plug-in throws, and ProtocolError.
void carry_out(RemoteCall call, const Context& context, MessageReader& request,
               MessageWriter& answer);

}  // namespace plumb::device::remote
