// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/input_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ranges>

namespace plumb::cases {

namespace {

constexpr const char* kInputs = "inputs";

// Whether padding rows have slot -1, length 0 and no token   [10.4].
bool is_padded_right(const device::decode::StepPlan& plan) {
  // A plan has no slots for a cache that its model does not have.
  const auto behind = [](const auto& values, std::int64_t first, std::int64_t wanted) {
    return std::ranges::all_of(values | std::views::drop(first),
                               [&](auto value) { return std::int64_t{value} == wanted; });
  };
  bool right = behind(plan.seq_lens, plan.live_requests, 0) &&
               behind(plan.state_lens, plan.live_tokens, 0) &&
               behind(plan.is_padding, plan.live_tokens, 1) &&
               behind(plan.query_start_loc, plan.live_requests, plan.live_tokens);
  for (const auto& slots : plan.slot_mapping) right = right && behind(slots, plan.live_tokens, -1);
  return right;
}

}  // namespace

void check_inputs(WatchedStep& step) {
  const WatchedEngine& plain = step.plain;
  if (!is_padded_right(plain.engine.plan())) {
    step.findings.add(Detector::inputs, 0, kInputs, kInputs, "padding has a slot or a length");
  }
  for (const device::decode::Transfer& transfer : plain.engine.planned_inputs()) {
    std::vector<std::byte> got(transfer.bytes);
    plain.device->copy(got.data(), transfer.to, got.size(), plain.engine.stream());
    if (std::memcmp(got.data(), transfer.from, got.size()) == 0) continue;
    step.findings.add(Detector::inputs, 0, kInputs, kInputs,
                      fmt::format("{} on the device differs from the host's plan", transfer.name));
  }
}

std::vector<PlannedInput> planned_inputs(const WatchedEngine& watched) {
  std::vector<PlannedInput> all;
  for (const device::decode::Transfer& transfer : watched.engine.planned_inputs()) {
    const auto* const to = static_cast<const std::byte*>(transfer.to);
    const auto* const from = static_cast<const std::byte*>(transfer.from);
    all.push_back(
        {std::string(transfer.name), {to, to + transfer.bytes}, {from, from + transfer.bytes}});
  }
  return all;
}

void check_inputs_of(const CallRecorder::CallRecording& call,
                     const std::vector<PlannedInput>& planned, WatchedStep& step) {
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (!copy.before || copy.to == nullptr || copy.row_bytes != 0) continue;
    const auto input = std::find_if(planned.begin(), planned.end(), [&](const PlannedInput& one) {
      return one.there.begin <= copy.from && copy.from < one.there.end;
    });
    if (input == planned.end()) continue;
    const auto bytes = std::min(copy.bytes, static_cast<std::size_t>(input->there.end - copy.from));
    const auto* const wanted = input->bytes.data() + (copy.from - input->there.begin);
    if (std::memcmp(call.tensors.at(copy.tensor).bytes().data(), wanted, bytes) == 0) continue;
    step.findings.add(Detector::inputs, 0, kInputs, kInputs,
                      fmt::format("{} differed from the host's plan when {} read it", input->name,
                                  call.place.name));
    return;
  }
}

}  // namespace plumb::cases
