// SPDX-License-Identifier: Apache-2.0
#include "tests/support/decode_serving.h"

namespace plumb::tests {

namespace {

std::unique_ptr<device::Device> open(const ServingOptions& options) {
  auto device = device::open_device(options.platform, options.conditions);
  return options.wrap == nullptr ? std::move(device) : options.wrap(std::move(device));
}

}  // namespace

Serving::Serving(const ServingOptions& options)
    : device(open(options)),
      ops(options.conditions.checked ? device::checked_implementation(options.platform)
                                     : device::builtin_implementation(options.platform)),
      engine(*device, ops, options.geometry, options.mode, options.policies) {}

void Serving::admit_all() {
  constexpr std::int64_t kTokens[] = {5, 90, 140, 300, 0, 16};
  const auto count = std::min<std::int64_t>(engine.geometry().max_requests, std::size(kTokens));
  for (std::int64_t id = 0; id < count; ++id) {
    engine.admit(static_cast<std::uint64_t>(id) + 1, kTokens[id]);
  }
}

std::vector<std::uint16_t> Serving::out() {
  const std::int64_t elements = engine.plan().live_tokens * engine.geometry().hidden;
  const auto rows = static_cast<std::size_t>(elements);
  std::vector<std::uint16_t> all(engine.drafter() != nullptr ? 2 * rows : rows);
  device->synchronize();
  device->copy(all.data(), engine.out(), rows * 2, engine.stream());
  if (engine.drafter() != nullptr) {
    device->copy(all.data() + rows, engine.drafter_out(), rows * 2, engine.stream());
  }
  return all;
}

std::string failures(cases::CallRecorder& recorder, const device::decode::Engine& engine) {
  std::string text;
  for (const auto& part : engine.parts()) {
    for (const auto& call : recorder.fetch(part)) {
      for (const cases::TensorReport& report : call->judge()) {
        for (const std::string& line : report.failures)
          text += call->place.name + ": " + line + "\n";
      }
    }
  }
  return text;
}

}  // namespace plumb::tests
