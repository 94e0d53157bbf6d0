// SPDX-License-Identifier: Apache-2.0
//
// The queues of a simulated device. A stream is a list of operations of which a prefix has
// executed; an event is a point in such a list. Both outlive their handle's destruction (until the
// device goes), so that work still pending and waits for it stay valid.
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
  int number = 0;  // counts from 1 in order of creation: the name in messages
  bool destroyed = false;

  std::deque<Operation> pending;
  std::uint64_t done = 0;         // operations executed so far
  std::uint64_t last_ticket = 0;  // of the newest operation, counted over all streams of the device

  std::shared_ptr<Capture> capture;  // the capture that this stream takes part in, or null
  std::vector<int> frontier;         // nodes that the next captured operation has to wait for

  std::uint64_t enqueued() const { return done + pending.size(); }
  StreamPoint tail() { return {this, enqueued()}; }
};

struct EventState {
  int number = 0;          // in order of creation
  bool destroyed = false;  // kept, so that no later event has its address
  StreamPoint point;       // most recent record outside a capture; no stream: never recorded
  std::shared_ptr<Capture> capture;  // set when the most recent record was captured
  std::vector<int> frontier;
};

std::string name_of(const StreamState& stream);  // "stream 2"
bool reached(const StreamPoint& point);

// Executes what has to run before `point` is reached, and nothing else: the prefix of its stream
// and, through waits, prefixes of others. Always ends: a wait names a record made before it, so
// that the streams on the way down are all different.
void run_until(const StreamPoint& point, Executor& executor);

// Executes everything that is pending on the streams, in pieces: which stream the next piece is of,
// among those that need not wait, is a function of the seed. A message says whose it is.
void run_interleaved(const std::vector<std::unique_ptr<StreamState>>& streams, Executor& executor,
                     std::uint64_t seed);

}  // namespace plumb::device::sim
