// SPDX-License-Identifier: Apache-2.0
//
// Decides what runs next. executor.cpp runs it.
#include "device/sim/streams/stream.h"

#include <optional>
#include <utility>

#include "device/sim/scramble.h"
#include "device/sim/streams/executor.h"

namespace plumb::device::sim {

namespace {

// A stream, and the progress of its first pending operation, which stays pending until it is
// finished.
struct PendingStream {
  StreamState* stream = nullptr;
  std::optional<OperationProgress> progress = std::nullopt;

  bool can_move() const {
    if (stream->pending.empty()) return false;
    const Wait* wait = std::get_if<Wait>(&stream->pending.front());
    return wait == nullptr || reached(wait->point);
  }

  void move(Executor& executor) {
    if (!progress) progress.emplace(executor, stream->pending.front());
    if (!progress->advance()) return;
    progress.reset();
    stream->pending.pop_front();
    ++stream->done;
  }
};

}  // namespace

std::string name_of(const StreamState& stream) { return "stream " + std::to_string(stream.number); }

bool reached(const StreamPoint& point) {
  return point.stream == nullptr || point.stream->done >= point.position;
}

void run_until(const StreamPoint& point, Executor& executor) {
  while (!reached(point)) {
    StreamState& stream = *point.stream;
    if (const Wait* wait = std::get_if<Wait>(&stream.pending.front())) {
      run_until(wait->point, executor);
    }
    // Removed first, so that an operation that throws is not run again.
    Operation operation = std::move(stream.pending.front());
    stream.pending.pop_front();
    ++stream.done;
    executor.run(std::move(operation));
  }
}

void run_interleaved(const std::vector<std::unique_ptr<StreamState>>& streams, Executor& executor,
                     std::uint64_t seed) {
  std::deque<PendingStream> lanes;
  for (const auto& stream : streams) {
    if (!stream->pending.empty()) lanes.emplace_back(stream.get());
  }
  std::vector<PendingStream*> ready;
  for (std::uint64_t turn = 0;; ++turn) {
    ready.clear();
    for (PendingStream& lane : lanes) {
      if (lane.can_move()) ready.push_back(&lane);
    }
    if (ready.empty()) return;
    PendingStream& lane = *ready[scramble(seed + turn * 0x9E3779B97F4A7C15U) % ready.size()];
    try {
      lane.move(executor);
    } catch (const DeviceError& error) {
      if (error.kind() == ErrorKind::unsupported) throw;  // not an error of the stream's work
      throw DeviceError(error.kind(), name_of(*lane.stream) + ": " + error.what());
    }
  }
}

}  // namespace plumb::device::sim
