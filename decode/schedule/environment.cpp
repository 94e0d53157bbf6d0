// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/environment.h"

#include "cases/drivers/background_load.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Allocates and fills pieces of many sizes from the allocator of temporaries and states. This
// overwrites memory that a graph still uses but does not own.
void churn(std::uint64_t seed, WatchedEngine& watched) {
  constexpr int kPieces = 24;
  device::CachingAllocator& memory = watched.engine.temporaries();
  std::vector<void*> pieces;
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    const auto bytes = std::size_t{256} << integer(seed, 2 * i, 0, 9);
    pieces.push_back(memory.allocate(bytes, "other work"));
    const auto byte = static_cast<std::uint8_t>(integer(seed, 2 * i + 1, 0, 255));
    watched.device->fill(pieces.back(), byte, bytes, watched.engine.stream());
  }
  for (void* const piece : pieces) memory.free(piece);
}

// Copies a request's cache blocks. Engines of one setup have equal caches and block numbers.
void copy_blocks(const device::decode::Request& request, const WatchedEngine& from,
                 WatchedEngine& to) {
  const auto sources = from.engine.caches(), targets = to.engine.caches();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::int64_t bytes = sources[i].block_bytes;
    std::vector<std::uint8_t> copy(static_cast<std::size_t>(bytes));
    for (const std::int64_t block : request.blocks[static_cast<int>(sources[i].cache)]) {
      if (block == 0) continue;
      from.device->copy(copy.data(), sources[i].data + block * bytes, copy.size(),
                        from.engine.stream());
      to.device->copy(targets[i].data + block * bytes, copy.data(), copy.size(),
                      to.engine.stream());
    }
  }
}

// Copies the caches of partial states whole. While a prompt is filled, its requests give back
// blocks that still hold its entries, and the engines would differ there.
void copy_partial_states(const WatchedEngine& from, WatchedEngine& to) {
  const auto& geometry = from.engine.geometry();
  const auto sources = from.engine.caches(), targets = to.engine.caches();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const device::decode::Cache cache = sources[i].cache;
    if (cache == device::decode::Cache::window || !geometry.frees(cache)) continue;
    std::vector<std::uint8_t> copy(
        static_cast<std::size_t>(geometry.blocks(cache) * sources[i].block_bytes));
    from.device->copy(copy.data(), sources[i].data, copy.size(), from.engine.stream());
    to.device->copy(targets[i].data, copy.data(), copy.size(), to.engine.stream());
  }
}

// A request with only the blocks that a prefix hit did not find.
device::decode::Request part_of(const device::decode::Request& request,
                                const device::decode::WindowGaps& gaps,
                                const device::decode::Geometry& geometry) {
  device::decode::Request part;
  for (const device::decode::Cache cache : device::decode::kOfTokens) {
    if (!geometry.has(cache)) continue;
    const auto which = static_cast<std::size_t>(cache);
    const std::int64_t page = geometry.pages[which];
    const auto first = request.blocks[which].begin();
    part.blocks[which].assign(first + gaps[cache].begin / page, first + gaps[cache].end / page);
  }
  return part;
}

}  // namespace

void let_requests_change(const ScheduledStep& scheduled, device::decode::Engine& engine) {
  for (const std::uint64_t id : scheduled.finished) engine.finish(id);
  for (const SharedPrefix& one : scheduled.shared) {
    engine.admit_behind(one.request, one.other, one.tokens);
  }
  for (const auto& [id, tokens] : scheduled.admitted) engine.admit(id, tokens);
}

void let_requests_change(const ScheduledStep& scheduled, const WatchedEngine& changed,
                         WatchedEngine& watched) {
  for (const std::uint64_t id : scheduled.finished) watched.engine.finish(id);
  for (const SharedPrefix& one : scheduled.shared) {
    const auto gaps = watched.engine.admit_behind_without_fill(one.request, one.other, one.tokens);
    const auto& request = changed.engine.request(one.request);
    copy_blocks(part_of(request, gaps, watched.engine.geometry()), changed, watched);
  }
  for (const auto& [id, tokens] : scheduled.admitted) {
    watched.engine.admit_without_fill(id, tokens);
    copy_blocks(changed.engine.request(id), changed, watched);
  }
  if (!scheduled.shared.empty() || !scheduled.admitted.empty()) {
    copy_partial_states(changed, watched);
  }
}

void disturb(const ScheduledStep& scheduled, const Environment& environment,
             WatchedEngine& watched) {
  if (scheduled.recapture > 0) watched.engine.recapture(scheduled.recapture - 1);
  if (scheduled.dummy_tokens > 0) watched.engine.run_dummy(scheduled.dummy_tokens);
  if (environment.churns) churn(environment.seed, watched);
}

device::decode::Padding padding_of(std::int64_t step) {
  constexpr std::uint64_t kStride = 0x9e3779b97f4a7c;  // far from the keys of live tokens
  return {.token_key = static_cast<std::int64_t>(static_cast<std::uint64_t>(step + 1) * kStride)};
}

void delay(const WatchedEngine& watched) {
  constexpr std::int32_t kRounds = 4000000;
  const device::OpEntry* const hog = device::find_entry(watched.ops, "occupancy_hog");
  launch_hog(*watched.device, hog ? *hog : own_hog(*watched.device),
             static_cast<std::uint32_t*>(watched.slow), 1, kRounds, watched.engine.stream());
}

}  // namespace plumb::cases
