// SPDX-License-Identifier: Apache-2.0
//
// Which calls of a step write where, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/recording/call_recorder.h"

namespace plumb::cases {

struct ByteRange {
  const std::byte *begin = nullptr, *end = nullptr;
};

class StepWriters {
 public:
  struct Writer {
    ByteRange range;
    std::string op, call;       // "mhc_post", "last mix"
    std::int64_t position = 0;  // of the call in the step
  };
  // What the call is to write.
  void note(const CallRecorder::CallRecording& call, std::int64_t position);
  // Of those noted so far. nullptr: none writes there.
  const Writer* latest(const std::byte* address) const;
  // The bytes in between that no call writes, in order.
  std::vector<ByteRange> untouched(const ByteRange& in) const;

 private:
  std::vector<Writer> writers_;
};

}  // namespace plumb::cases
