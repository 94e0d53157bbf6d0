// SPDX-License-Identifier: Apache-2.0
//
// Identifies a call of a trace in reports.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.h"

namespace plumb::trace {

struct CallPlace {
  std::int64_t rank = 0, step = 0, index = 0, calls = 0;  // call `index` of `calls` of its step
  std::string op, name;
  std::int64_t layer = -1, stream = 0, replay = -1;  // -1: no layer; not replayed

  // The op, or the engine's name if the op is unknown.
  const std::string& kind() const { return op.empty() ? name : op; }
};

inline CallPlace place_of(const TraceStep& step, std::size_t index) {
  const TraceCall& call = step.calls.at(index);
  return {.rank = step.rank,
          .step = step.step,
          .index = static_cast<std::int64_t>(index),
          .calls = std::ssize(step.calls),
          .op = call.op,
          .name = call.name,
          .layer = call.layer,
          .stream = call.stream,
          .replay = call.replay.value_or(-1)};
}

}  // namespace plumb::trace
