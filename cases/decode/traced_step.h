// SPDX-License-Identifier: Apache-2.0
//
// Digests of what the calls of a step read and wrote, row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/decode/watched_engine.h"

namespace plumb::cases {

struct TracedTensor {
  std::string name;
  bool input = false;
  const std::byte* address = nullptr;
  std::vector<std::uint64_t> rows;  // of an output what is promised, else 0
};

struct TracedCall {
  std::string part, name, op;
  bool deterministic = true;
  std::vector<TracedTensor> tensors;
};

struct TracedStep {
  std::vector<TracedCall> calls;
  std::vector<std::byte> results;  // live rows
};

// The latest step of a tapped engine; its work is over.
TracedStep trace(WatchedEngine& watched);

}  // namespace plumb::cases
