// SPDX-License-Identifier: Apache-2.0
//
// The queues of a simulated device. A stream is a list of operations of which a prefix has run. An
// event is a point in such a list. Both exist until the device is destroyed, even if their handle
// is destroyed before, so that pending work and waits stay valid.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "device/sim/streams/operation.h"

namespace plumb::device::sim {

class SimDevice;
class Executor;
struct Capture;

struct StreamState {
  SimDevice* device = nullptr;
  int number = 0;  // counts from 1 in order of creation; messages show it
  bool destroyed = false;

  std::deque<Operation> pending;
  std::uint64_t done = 0;         // operations executed so far
  std::uint64_t last_ticket = 0;  // newest operation's number, counted over all streams

  std::shared_ptr<Capture> capture;  // the capture that this stream takes part in, or null
  std::vector<int> frontier;         // nodes that the next captured operation has to wait for

  std::uint64_t enqueued() const { return done + pending.size(); }
  StreamPoint tail() { return {this, enqueued()}; }
};

struct EventState {
  int number = 0;          // counts from 1 in order of creation
  bool destroyed = false;  // kept, so that no later event has its address
  StreamPoint point;       // most recent record outside a capture; no stream: never recorded
  std::shared_ptr<Capture> capture;  // set when the most recent record was captured
  std::vector<int> frontier;
};

std::string name_of(const StreamState& stream);  // "stream 2"
bool reached(const StreamPoint& point);

// Runs only what has to run before `point` is reached: the prefix of its stream and, through waits,
// prefixes of others. Always ends: a wait names a record made before it, so that a chain of waits
// never returns to a stream.
void run_until(const StreamPoint& point, Executor& executor);

// Runs everything that is pending on the streams, in pieces. The seed decides which of the streams
// that need not wait gets the next piece. Error messages name the stream.
void run_interleaved(const std::vector<std::unique_ptr<StreamState>>& streams, Executor& executor,
                     std::uint64_t seed);

}  // namespace plumb::device::sim
