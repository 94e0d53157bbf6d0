// SPDX-License-Identifier: Apache-2.0
//
// A capture in progress. Operations of one stream, and of streams that joined by waiting for an
// event of the capture, become nodes of a graph instead of running. The first call that a capture
// may not contain spoils it; afterwards the capture can only be ended.
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
  std::thread::id thread;  // the thread that began it has to end it
  bool ended = false;
  std::string offence;  // empty: none so far
  std::vector<CapturedNode> nodes;
  std::vector<int> last;  // the origin's frontier, once the capture has ended
};

// Adds a node to the stream's capture, behind the nodes on which the stream depends. Throws
// capture_invalid if the capture has been spoilt.
void append(StreamState& stream, Operation operation);

void record_captured(EventState& event, const StreamState& stream);
// Makes the stream depend on what the captured event depends on; the stream joins the capture if it
// is in none. Throws capture_invalid if the event's capture has ended, capture_unsupported if the
// stream is in another one.
void wait_captured(StreamState& stream, const EventState& event);

// Stores `what` as the capture's offence, if it has none yet.
void spoil(Capture& capture, const std::string& what);
// Spoils the capture with `what`, and throws capture_unsupported.
[[noreturn]] void refuse(Capture& capture, const std::string& what);

// Returns the graph. Throws capture_invalid if the capture was spoilt, or a branch was not joined.
std::shared_ptr<const GraphData> finish(Capture& capture);

}  // namespace plumb::device::sim
