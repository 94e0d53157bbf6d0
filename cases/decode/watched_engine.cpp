// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/watched_engine.h"

#include <utility>

namespace plumb::cases {

namespace {

const plumb_implementation& ops_of(const DecodeSetup& setup) {
  const bool checked = setup.conditions.checked;
  if (setup.implementation) return setup.implementation(setup.platform, checked);
  return checked ? device::checked_implementation(setup.platform)
                 : device::builtin_implementation(setup.platform);
}

}  // namespace

std::unique_ptr<device::Device> open(const DecodeSetup& setup) {
  auto device = device::open_device(setup.platform, setup.conditions);
  return setup.wrap ? setup.wrap(std::move(device)) : std::move(device);
}

WatchedEngine::WatchedEngine(const DecodeSetup& setup, std::shared_ptr<device::Device> shared)
    : device(std::move(shared)),
      ops(ops_of(setup)),
      engine(*device, ops, setup.geometry, setup.mode, setup.policies, setup.environment.seed) {}

WatchedEngine::WatchedEngine(const DecodeSetup& setup, std::optional<Taps::Kept> kept)
    : WatchedEngine(setup, open(setup)) {
  if (!kept) return;
  taps = std::make_unique<Taps>(*device, engine.geometry(), ops, engine.temporaries(), *kept);
  if (setup.sample > 0) taps->sample(setup.sample, engine.caches());
  engine.observe(taps.get());
}

Snapshot snapshot(const WatchedEngine& watched) {
  Snapshot all;
  for (const auto& block : watched.engine.memory().blocks()) {
    all.emplace_back(block.bytes);
    watched.device->copy(all.back().data(), block.address, block.bytes, watched.engine.stream());
  }
  return all;
}

}  // namespace plumb::cases
