// SPDX-License-Identifier: Apache-2.0
//
// A decode engine on a device of its own, with a few requests of different length: what tests of
// the step's host half drive.
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

// Of a device that keeps what it is wrapped in.
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

  // As many as fit, the first six of: shorter than the window, longer than what the top-k keeps,
  // past one and past two long states, new, at the window's edge.
  void admit_all();
  // Live rows that the latest step returned: of the target, then of the drafter if there is one.
  std::vector<std::uint16_t> out();

  std::unique_ptr<device::Device> device;
  const device::Implementation& ops;
  device::decode::Engine engine;
};

// Everything that the parts of the latest step got wrong, a line each; "" if nothing.
std::string failures(cases::CallRecorder& recorder, const device::decode::Engine& engine);

}  // namespace plumb::tests
