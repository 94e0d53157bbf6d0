// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/flow_checks.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace plumb::cases {

namespace {

using device::decode::CallPlace;

// Whether the op reads the residual that the layer before has written.
bool joins_layers(std::string_view op) {
  static const std::set<std::string_view> ops{
      "mhc_pre",  "mhc_pre_broadcast", "mhc_fused_post_pre",
      "mhc_post", "hc_head",           "fused_add_rms_norm"};
  return ops.contains(op);
}

bool are_of_one_layer(const CallPlace& reader, const CallPlace& writer) {
  if (reader.layer < 0 || writer.layer < 0) return true;
  return reader.layer == writer.layer && reader.draft == writer.draft;
}

bool are_of_one_chunk(const CallPlace& reader, const CallPlace& writer) {
  return reader.chunk < 0 || writer.chunk < 0 || reader.chunk == writer.chunk;
}

}  // namespace

void check_flow(const CallRecorder::CallRecording& call, WatchedStep& step) {
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (!copy.before || copy.tensor.ends_with(kBefore)) continue;
    const StepWriters::Writer* const writer = step.writers.latest(copy.from);
    if (writer == nullptr) continue;
    const bool layer = joins_layers(call.op) || are_of_one_layer(call.place, writer->place);
    if (layer && are_of_one_chunk(call.place, writer->place)) continue;
    step.findings.add(Detector::order, step.calls, writer->op, call.place.name,
                      fmt::format("{} of {} is the output of {}, a call of another layer or chunk: "
                                  "a call of {} is missing",
                                  copy.tensor, call.place.name, writer->call, writer->op));
    return;
  }
}

}  // namespace plumb::cases
