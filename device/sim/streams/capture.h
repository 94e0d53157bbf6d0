// SPDX-License-Identifier: Apache-2.0
//
// A capture in progress: operations of one stream, and of those that joined it by waiting for an
// event of it, become nodes of a graph instead of running. The first call that a capture may not
// contain spoils it; only ending it is possible then.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/sim/streams/operation.h"
#include "device/sim/streams/stream.h"

namespace plumb::device::sim {

struct Capture {
  StreamState* origin = nullptr;
  std::thread::id thread;  // that began it, and has to end it
  bool ended = false;
  std::string offence;  // empty: none so far
  std::vector<CapturedNode> nodes;
  std::vector<int> last;  // the origin's frontier, once the capture has ended
};

// Adds a node to the capture of the stream, after the nodes that the stream depends on. Throws
// capture_invalid if the capture has been spoilt.
void append(StreamState& stream, Operation operation);

void record_captured(EventState& event, const StreamState& stream);
// The stream, capturing or about to, depends on what the captured event depends on. Throws
// capture_invalid if the event's capture is over, capture_unsupported if it is another one.
void wait_captured(StreamState& stream, const EventState& event);

// Notes `what` as the capture's offence, if it is the first.
void spoil(Capture& capture, const std::string& what);
// Spoils the capture and throws capture_unsupported.
[[noreturn]] void refuse(Capture& capture, const std::string& what);

// The graph. Throws capture_invalid if the capture was spoilt, or if a branch has not been joined.
std::shared_ptr<const GraphData> finish(Capture& capture);

}  // namespace plumb::device::sim
