// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/step_writers.h"

#include <algorithm>
#include <vector>

namespace plumb::cases {

namespace {

std::int64_t rows_of(const HostTensor& tensor, const CallRecorder::TensorCopy& copy) {
  const TensorSpec& spec = tensor.spec();
  const std::size_t dense = static_cast<std::size_t>(tensor.elements()) * size_of(spec.dtype);
  const bool in_rows = copy.row_bytes != 0 || (copy.bytes == dense && dense != 0);
  return in_rows && !spec.shape.empty() ? spec.shape.front() : 0;
}

}  // namespace

void StepWriters::note(const CallRecorder::CallRecording& call, std::int64_t position) {
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (copy.before) continue;
    writers_.push_back({{copy.from, copy.from + copy.bytes},
                        call.op,
                        call.place.name,
                        call.place,
                        position,
                        rows_of(call.tensors.at(copy.tensor), copy)});
  }
}

const StepWriters::Writer* StepWriters::latest(const std::byte* address) const {
  const auto found = std::find_if(writers_.rbegin(), writers_.rend(), [&](const Writer& writer) {
    return writer.range.begin <= address && address < writer.range.end;
  });
  return found == writers_.rend() ? nullptr : &*found;
}

std::vector<ByteRange> StepWriters::untouched(const ByteRange& in) const {
  std::vector<ByteRange> written;
  for (const Writer& writer : writers_) {
    if (writer.range.begin < in.end && in.begin < writer.range.end) {
      written.push_back(writer.range);
    }
  }
  std::sort(written.begin(), written.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> gaps;
  const std::byte* at = in.begin;
  for (const ByteRange& range : written) {
    if (at < range.begin) gaps.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (at < in.end) gaps.push_back({at, in.end});
  return gaps;
}

}  // namespace plumb::cases
