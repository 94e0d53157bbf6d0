// SPDX-License-Identifier: Apache-2.0
//
// Between the C functions of the host table and the devices: which stream is whose, and what a
// service threw. No exception passes through a plug-in's frames: it is kept on the thread and
// thrown again once the plug-in has returned.
#pragma once

#include <plumb/plumb_plugin.h>

#include <string>

namespace plumb::device {

class HostedDevice;

// The table that a plug-in gets; one for the process. Its functions find the device by the stream.
const plumb_host& plugin_services();

void remember_stream(plumb_stream stream, HostedDevice& device);
void forget_stream(plumb_stream stream);
void forget_streams_of(const HostedDevice& device);

// Around a call of the plug-in on this thread: forgets what was kept; throws it.
void begin_plugin_call();
void rethrow_service_error();
// What the plug-in said of its call; reading clears it.
std::string take_explanation();

}  // namespace plumb::device
