// SPDX-License-Identifier: Apache-2.0
//
// Calls that were judged and right. A verdict is a function of the call's row, of what the
// implementation declares and of the bytes: another graph mode, whose calls are the same, need not
// ask again.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <set>

#include "cases/tensors/tensor.h"
#include "decode/recording/call_tensors.h"

namespace plumb::cases {

// For any number of threads.
class RightCalls {
 public:
  using Digest = std::array<std::uint64_t, 2>;

  // Of an op's call on this platform, with all its tensors.
  static Digest digest(const JudgedCall& call, const TensorSet& tensors,
                       const device::Properties& properties);

  bool has(const Digest& digest) const;
  void add(const Digest& digest);

 private:
  mutable std::mutex mutex_;
  std::set<Digest> digests_;
};

// Of this process.
RightCalls& right_calls();

}  // namespace plumb::cases
