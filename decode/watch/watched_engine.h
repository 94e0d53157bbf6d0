// SPDX-License-Identifier: Apache-2.0
//
// An engine under watch, on its own device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/recording/call_recorder.h"
#include "decode/watch/exchange.h"

namespace plumb::cases {

// Conditions that may not change the results of a step.
struct Environment {
  std::uint64_t seed = 1;        // of the weights and of the order of cache blocks
  bool churns = false;           // other users allocate temporaries between steps
  std::int64_t fresh_every = 0;  // every n-th step is also run by a newly created engine; 0: never
  // A slow kernel runs before each step, so that the host is ahead of a real device. (A simulated
  // device with late streams behaves like that anyway.)
  bool delays = false;
};

// Setup of the code under test. A fault changes it, for all engines alike.
struct DecodeSetup {
  std::string platform = "sim-sm90";
  device::Conditions conditions;
  device::decode::Geometry geometry = device::decode::small_geometry(4, 0, 48);
  device::decode::GraphMode mode = device::decode::GraphMode::full;
  device::decode::Policies policies;
  // Table of ops for a platform, as in RunOptions. Empty: plumb's own.
  std::function<const device::Implementation&(std::string_view platform, bool checked)>
      implementation;
  std::function<std::unique_ptr<device::Device>(std::unique_ptr<device::Device>)> wrap;
  // Number of steps enqueued before the host waits. Of the earlier ones, only the inputs that their
  // calls read are checked.
  std::int64_t in_flight = 1;
  // Rows of each call that the reference judges, for steps too large for it; 0: all. All rows are
  // still compared bit for bit between engines. Needs in_flight = 1.
  std::int64_t sample = 0;
  Environment environment;
  // Calls that the reference replaces, in all engines; nullptr: none. Not allowed with `sample`.
  std::shared_ptr<const Exchanged> exchanged;
};

std::unique_ptr<device::Device> open(const DecodeSetup& setup);

struct WatchedEngine {
  // Without `kept`: no recorder.
  explicit WatchedEngine(const DecodeSetup& setup, std::optional<CallRecorder::Kept> kept = {});
  // One of several engines on a shared device.
  WatchedEngine(const DecodeSetup& setup, std::shared_ptr<device::Device> shared);

  std::shared_ptr<device::Device> device;
  const device::Implementation& ops;
  const device::decode::Geometry geometry;
  std::unique_ptr<Exchange> exchange;  // nullptr: every op runs
  device::decode::Engine engine;
  std::unique_ptr<CallRecorder> recorder;  // nullptr: nothing is recorded
  void* slow = nullptr;  // buffer of the slow kernel before a step, if there is one
};

// Adds the parts of a later step. A part that the later step runs again replaces the earlier one.
void add_parts(const device::decode::StepSegments::Parts& step,
               device::decode::StepSegments::Parts& to);

// Contents of an engine's memory, block by block.
using Snapshot = std::vector<std::vector<std::byte>>;
// `memory`: an earlier snapshot of the engine, whose memory is used again.
Snapshot snapshot(const WatchedEngine& watched, Snapshot memory = {});

}  // namespace plumb::cases
