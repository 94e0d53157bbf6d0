// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/watched_engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace plumb::cases {

using device::decode::StepPart;
using device::decode::StepSegments;

namespace {

constexpr std::size_t kSlowBytes = 256;  // working set of one block of the occupancy hog

const device::Implementation& ops_of(const DecodeSetup& setup) {
  const bool checked = setup.conditions.checked;
  if (setup.implementation) return setup.implementation(setup.platform, checked);
  return checked ? device::checked_implementation(setup.platform)
                 : device::builtin_implementation(setup.platform);
}

std::unique_ptr<Exchange> make_exchange(const DecodeSetup& setup, device::Device& device,
                                        const device::decode::Geometry& geometry,
                                        const device::Implementation& ops) {
  if (!setup.exchanged) return nullptr;
  if (setup.sample > 0) throw std::invalid_argument("ops of a sampled watch cannot be replaced");
  return std::make_unique<Exchange>(device, geometry, ops, setup.exchanged);
}

// Fills the caches of a real device with 0xff: NaN in e4m3fn, in scales and in bf16, and -240 in
// e4m3fnuz. Fresh device memory may be zero, which would hide a read of entries that were never
// written.
void spoil_caches(const DecodeSetup& setup, WatchedEngine& watched) {
  constexpr std::uint8_t kNoNumber = 0xff;
  if (watched.device->properties().simulated) return;  // the simulator poisons all memory
  const auto& blocks = watched.engine.memory().blocks();
  for (const device::decode::CacheView& cache : watched.engine.caches()) {
    const auto bytes = static_cast<std::size_t>(setup.geometry.blocks(cache.cache)) *
                       static_cast<std::size_t>(cache.block_bytes);
    for (const auto& block : blocks) {
      if (block.address != static_cast<const void*>(cache.data)) continue;
      watched.device->fill(block.address, kNoNumber, std::min(bytes, block.bytes),
                           watched.engine.stream());
    }
  }
}

}  // namespace

std::unique_ptr<device::Device> open(const DecodeSetup& setup) {
  auto device = device::open_device(setup.platform, setup.conditions);
  return setup.wrap ? setup.wrap(std::move(device)) : std::move(device);
}

WatchedEngine::WatchedEngine(const DecodeSetup& setup, std::shared_ptr<device::Device> shared)
    : device(std::move(shared)),
      ops(ops_of(setup)),
      geometry(setup.geometry),
      exchange(make_exchange(setup, *device, geometry, ops)),
      engine(*device, ops, setup.geometry, setup.mode, setup.policies, setup.environment.seed) {
  engine.exchange(exchange.get());
  spoil_caches(setup, *this);
  if (setup.environment.delays) slow = device->allocate(kSlowBytes, "a slow kernel's");
}

WatchedEngine::WatchedEngine(const DecodeSetup& setup, std::optional<CallRecorder::Kept> kept)
    : WatchedEngine(setup, open(setup)) {
  if (!kept) return;
  recorder =
      std::make_unique<CallRecorder>(*device, engine.geometry(), ops, engine.temporaries(), *kept);
  recorder->exchange(setup.exchanged);
  if (setup.sample > 0) recorder->sample(setup.sample, engine.caches());
  engine.observe(recorder.get());
}

void add_parts(const StepSegments::Parts& step, StepSegments::Parts& to) {
  for (const StepPart& part : step) {
    std::erase_if(to, [&](const StepPart& earlier) {
      return earlier == part || (earlier.varies && part.varies && earlier.name == part.name);
    });
    to.push_back(part);
  }
}

Snapshot snapshot(const WatchedEngine& watched, Snapshot memory) {
  const auto& blocks = watched.engine.memory().blocks();
  memory.resize(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    memory[i].resize(blocks[i].bytes);
    watched.device->copy(memory[i].data(), blocks[i].address, blocks[i].bytes,
                         watched.engine.stream());
  }
  return memory;
}

}  // namespace plumb::cases
