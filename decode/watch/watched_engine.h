// SPDX-License-Identifier: Apache-2.0
//
// An engine under watch, on a device of its own.
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

// What a step depends on and does not know of.
struct Environment {
  std::uint64_t seed = 1;        // of the weights, and of where the blocks of caches are
  bool churns = false;           // somebody else uses the allocator of temporaries between steps
  std::int64_t fresh_every = 0;  // each so many-th step is also taken by an engine made anew
  // A slow kernel is in front of each step: the host is ahead of a real device, as it is of a
  // simulated one whose policy is late.
  bool delays = false;
};

// How the code under test is set up. A fault changes it, for all engines alike.
struct DecodeSetup {
  std::string platform = "sim-sm90";
  device::Conditions conditions;
  device::decode::Geometry geometry = device::decode::small_geometry(4, 0, 48);
  device::decode::GraphMode mode = device::decode::GraphMode::full;
  device::decode::Policies policies;
  // The table of ops for a platform, as in RunOptions; plumb's own, unless set.
  std::function<const device::Implementation&(std::string_view platform, bool checked)>
      implementation;
  std::function<std::unique_ptr<device::Device>(std::unique_ptr<device::Device>)> wrap;
  // Steps that are enqueued before anybody waits for one. All but the last of them are watched only
  // as far as later ones leave something: what they read of their inputs.
  std::int64_t in_flight = 1;
  // Rows of each call that the reference judges, of steps too large for it; 0: all of them. Every
  // row is compared bit for bit all the same. One step in flight only.
  std::int64_t sample = 0;
  Environment environment;
  // Calls that the reference stands in for, in all engines alike; null: none. Not with a sample.
  std::shared_ptr<const Exchanged> exchanged;
};

std::unique_ptr<device::Device> open(const DecodeSetup& setup);

struct WatchedEngine {
  // Without a recorder, unless it is said what it keeps.
  explicit WatchedEngine(const DecodeSetup& setup, std::optional<CallRecorder::Kept> kept = {});
  // One of several on a device.
  WatchedEngine(const DecodeSetup& setup, std::shared_ptr<device::Device> shared);

  std::shared_ptr<device::Device> device;
  const device::Implementation& ops;
  const device::decode::Geometry geometry;
  std::unique_ptr<Exchange> exchange;  // none: every op runs
  device::decode::Engine engine;
  std::unique_ptr<CallRecorder> recorder;  // none: nothing is recorded
  void* slow = nullptr;  // what the kernel in front of a step works on, if there is one
};

// Of a step that follows those whose parts these are: what it runs again is its own.
void add_parts(const device::decode::StepSegments::Parts& step,
               device::decode::StepSegments::Parts& to);

// What an engine's memory holds, in the order of its blocks.
using Snapshot = std::vector<std::vector<std::byte>>;
Snapshot snapshot(const WatchedEngine& watched);

}  // namespace plumb::cases
