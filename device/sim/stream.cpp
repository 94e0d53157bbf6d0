// SPDX-License-Identifier: Apache-2.0
//
// Decides what runs next, and nothing else: executor.cpp runs it.
#include "device/sim/stream.h"

#include <utility>

#include "device/sim/executor.h"

namespace plumb::device::sim {

std::string name_of(const StreamState& stream) { return "stream " + std::to_string(stream.number); }

bool reached(const Point& point) {
  return point.stream == nullptr || point.stream->done >= point.position;
}

void run_until(const Point& point, Executor& executor) {
  while (!reached(point)) {
    StreamState& stream = *point.stream;
    if (const Wait* wait = std::get_if<Wait>(&stream.pending.front())) {
      run_until(wait->point, executor);
    }
    // Taken out first: an operation that throws is not run again.
    const Operation operation = std::move(stream.pending.front());
    stream.pending.pop_front();
    ++stream.done;
    executor.run(operation);
  }
}

}  // namespace plumb::device::sim
