// SPDX-License-Identifier: Apache-2.0
//
// The calls of a step that write each byte range, in the order of the calls.
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
    std::string op, call;             // "mhc_post", "last mix"
    device::decode::CallPlace place;  // layer and chunk of the call
    std::int64_t position = 0;        // number of the call in the step
    std::int64_t rows = 0;            // of the tensor; 0: their distance is unknown
    std::int64_t bytes() const { return range.end - range.begin; }
    std::int64_t row_of(const std::byte* address) const {
      return (address - range.begin) / ((range.end - range.begin) / rows);
    }
  };
  // Notes the outputs of a call.
  void note(const CallRecorder::CallRecording& call, std::int64_t position);
  // The latest noted call that writes this address. nullptr: none.
  const Writer* latest(const std::byte* address) const;
  const std::vector<Writer>& all() const { return writers_; }
  // Byte ranges inside `in` that no noted call writes, in order.
  std::vector<ByteRange> untouched(const ByteRange& in) const;

 private:
  std::vector<Writer> writers_;
};

}  // namespace plumb::cases
