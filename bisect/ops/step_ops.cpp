// SPDX-License-Identifier: Apache-2.0
#include "bisect/ops/step_ops.h"

#include <cstring>

#include "cases/tables/registry.h"
#include "decode/checks/fresh_checks.h"
#include "decode/schedule/environment.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "reference/formats/bfloat16.h"

namespace plumb::bisect {

namespace {

Ops make_ops() {
  Ops ops;
  for (const cases::OpDefinition& op : cases::all_ops()) ops.insert(std::string(op.name));
#define PLUMB_ADD_PLACEHOLDER(name) ops.insert(#name);
  PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_ADD_PLACEHOLDER)
#undef PLUMB_ADD_PLACEHOLDER
  return ops;
}

void append_numbers(const std::vector<std::byte>& rows, std::vector<float>& to) {
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, rows.data() + i, sizeof bits);
    to.push_back(static_cast<float>(reference::decode_bf16(bits)));
  }
}

}  // namespace

const Ops& exchangeable_ops() {
  static const Ops ops = make_ops();
  return ops;
}

cases::DecodeSetup with_exchanged(cases::DecodeSetup setup, const Ops& exchanged) {
  setup.exchanged =
      exchanged.empty() ? nullptr : std::make_shared<const cases::Exchanged>(exchanged);
  return setup;
}

OpsAnswer watch_exchanged(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape,
                          const Ops& exchanged) {
  return {cases::watch(with_exchanged(setup, exchanged), shape).findings, "", ""};
}

std::vector<float> results_of(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape) {
  std::vector<float> all;
  try {
    cases::WatchedEngine watched(setup);
    watched.engine.capture();
    for (const cases::ScheduledStep& scheduled : cases::make_schedule(shape, setup.geometry)) {
      cases::let_requests_change(scheduled, watched.engine);
      cases::disturb(scheduled, setup.environment, watched);
      watched.engine.step(scheduled.batch);
      watched.device->synchronize();
      append_numbers(cases::live_results(watched), all);
    }
  } catch (const std::exception&) {
    return {};
  }
  return all;
}

}  // namespace plumb::bisect
