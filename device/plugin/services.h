// SPDX-License-Identifier: Apache-2.0
//
// Between the C functions of the host table and the devices: finds the device of a stream, and
// keeps what a service threw. No exception may pass through a plug-in's frames: it is kept on the
// thread and thrown again when the plug-in has returned.
#pragma once

#include <plumb/plumb_plugin.h>

#include <string>

namespace plumb::device {

class HostedDevice;

// The table that every plug-in gets. Its functions find the device by the stream.
const plumb_host& plugin_services();

void remember_stream(plumb_stream stream, HostedDevice& device);
void forget_stream(plumb_stream stream);
void forget_streams_of(const HostedDevice& device);

// Called before and after a call of the plug-in, on its thread. The first forgets the kept error,
// the second throws it.
void begin_plugin_call();
void rethrow_service_error();
// The plug-in's explanation of its last call. Reading clears it.
std::string take_explanation();

}  // namespace plumb::device
