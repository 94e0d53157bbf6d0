// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/fresh_checks.h"

#include <algorithm>

namespace plumb::cases {

namespace {

void append_rows(const WatchedEngine& watched, const std::uint16_t* out,
                 std::vector<std::byte>& to) {
  const auto& engine = watched.engine;
  const std::int64_t elements = engine.plan().live_tokens * engine.geometry().hidden;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof *out, before = to.size();
  to.resize(before + bytes);
  watched.device->copy(to.data() + before, out, bytes, engine.stream());
}

// Copies all caches. Both engines allocate their memory blocks in the same order.
void copy_caches(const WatchedEngine& from, WatchedEngine& to) {
  const auto &source = from.engine.memory().blocks(), &target = to.engine.memory().blocks();
  for (const auto& cache : from.engine.caches()) {
    const auto found = std::find_if(source.begin(), source.end(), [&](const auto& block) {
      return block.address == reinterpret_cast<const std::byte*>(cache.data);
    });
    std::vector<std::byte> bytes(found->bytes);
    from.device->copy(bytes.data(), found->address, bytes.size(), from.engine.stream());
    std::byte* const there = target.at(static_cast<std::size_t>(found - source.begin())).address;
    to.device->copy(there, bytes.data(), bytes.size(), to.engine.stream());
  }
}

}  // namespace

std::vector<std::byte> live_results(const WatchedEngine& watched) {
  std::vector<std::byte> rows;
  append_rows(watched, watched.engine.out(), rows);
  if (watched.engine.drafter() != nullptr) append_rows(watched, watched.engine.drafter_out(), rows);
  return rows;
}

void adopt(const WatchedEngine& old, WatchedEngine& fresh) {
  fresh.engine.adopt_requests(old.engine);
  copy_caches(old, fresh);
}

std::vector<std::byte> fresh_results(const ScheduledStep& scheduled, const DecodeSetup& setup,
                                     const WatchedEngine& old) {
  WatchedEngine fresh(setup);
  fresh.engine.capture();
  old.device->synchronize();
  adopt(old, fresh);
  fresh.engine.step(scheduled.batch);
  fresh.device->synchronize();
  return live_results(fresh);
}

}  // namespace plumb::cases
