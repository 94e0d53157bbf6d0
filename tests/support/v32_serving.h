// SPDX-License-Identifier: Apache-2.0
//
// An engine of V3.2 on its own simulated device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/checks/paged_buffers.h"
#include "decode/engine/engine.h"
#include "decode/recording/call_recorder.h"

namespace plumb::tests {

using Ids = std::vector<std::uint64_t>;

struct V32Serving {
  V32Serving(const std::string& platform, device::decode::GraphMode mode,
             const device::decode::Geometry& geometry = device::decode::small_v32_geometry(4),
             const device::decode::V32Policies& policies = {},
             const device::Conditions& conditions = {})
      : device(device::open_device(platform, conditions)),
        ops(conditions.checked ? device::checked_implementation(platform)
                               : device::builtin_implementation(platform)),
        engine(*device, ops, geometry, mode, with(policies)) {}

  static device::decode::Policies with(const device::decode::V32Policies& v32) {
    device::decode::Policies policies;
    policies.v32 = v32;
    return policies;
  }
  // Lengths: shorter than a block of the plan; shorter than the top-k; one token less than the
  // top-k; longer.
  void admit_all() {
    const std::int64_t tokens[] = {5, 90, 127, 300};
    for (std::uint64_t id = 0; id < 4; ++id) engine.admit(id + 1, tokens[id]);
  }
  // The output's live rows.
  std::vector<std::uint16_t> out() {
    const std::int64_t rows = engine.plan().live_tokens * engine.geometry().hidden;
    std::vector<std::uint16_t> values(static_cast<std::size_t>(rows));
    device->synchronize();
    device->copy(values.data(), engine.out(), values.size() * 2, engine.stream());
    return values;
  }

  std::unique_ptr<device::Device> device;
  const device::Implementation& ops;
  device::decode::Engine engine;
};

// One line, "paged metadata: req_id_per_token", for each buffer that differs from what the step
// requires.
inline std::string wrong_buffers(V32Serving& serving) {
  std::string lines;
  for (const auto& wrong : cases::wrong_paged_buffers(serving.engine, *serving.device)) {
    lines += wrong.call + ": " + wrong.text.substr(0, wrong.text.find(':')) + "\n";
  }
  return lines;
}

// The recorder's failures for one part of the latest step, one line each.
inline std::string failures(cases::CallRecorder& recorder, const std::string& part,
                            std::int64_t tokens) {
  std::string text;
  for (const auto& call : recorder.fetch({part, tokens})) {
    for (const cases::TensorReport& report : call->judge()) {
      for (const std::string& line : report.failures) text += call->place.name + ": " + line + "\n";
    }
  }
  return text;
}

}  // namespace plumb::tests
