// SPDX-License-Identifier: Apache-2.0
//
// A decode engine on its own device, with a few requests of different length, for tests of the host
// half of a decode step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/recording/call_recorder.h"

namespace plumb::tests {

using Ids = std::vector<std::uint64_t>;

// Wraps a device in another one that keeps it.
using Wrap = std::unique_ptr<device::Device> (*)(std::unique_ptr<device::Device>);

struct ServingOptions {
  std::string platform = "sim-sm90";
  std::optional<device::decode::GraphMode> mode;
  device::decode::Geometry geometry = device::decode::small_geometry(4);
  device::decode::Policies policies = {};
  device::Conditions conditions = {};
  Wrap wrap = nullptr;
};

struct Serving {
  explicit Serving(const ServingOptions& options);

  // Admits as many requests as fit, with this many tokens: 5, shorter than the window; 90, more
  // than the top-k keeps; 140 and 300, beyond one and two of the compressor's states of 128 tokens;
  // 0, new; 16, at the window's edge.
  void admit_all();
  // Live rows of the latest step's output: those of the target, then those of the drafter if there
  // is one.
  std::vector<std::uint16_t> out();

  std::unique_ptr<device::Device> device;
  const device::Implementation& ops;
  device::decode::Engine engine;
};

// All failures in the recorded calls of the latest step, one line each; "" if there are none.
std::string failures(cases::CallRecorder& recorder, const device::decode::Engine& engine);

}  // namespace plumb::tests
