// SPDX-License-Identifier: Apache-2.0
//
// Calls already judged right. A verdict depends only on the platform, the call's op and row, the
// declared numerics, and the bytes of its tensors. So a call with equal bytes in another graph mode
// is not judged again.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <set>

#include "cases/tensors/tensor.h"
#include "decode/recording/call_tensors.h"

namespace plumb::cases {

// Thread-safe.
class RightCalls {
 public:
  using Digest = std::array<std::uint64_t, 2>;

  // Digest of a call on this platform with the bytes of all its tensors.
  static Digest digest(const JudgedCall& call, const TensorSet& tensors,
                       const device::Properties& properties);

  bool has(const Digest& digest) const;
  void add(const Digest& digest);

 private:
  mutable std::mutex mutex_;
  std::set<Digest> digests_;
};

// One object per process.
RightCalls& right_calls();

}  // namespace plumb::cases
