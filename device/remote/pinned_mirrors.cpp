// SPDX-License-Identifier: Apache-2.0
#include "device/remote/pinned_mirrors.h"

#include <algorithm>
#include <iterator>

namespace plumb::device::remote {

void* PinnedMirrors::add(std::uint64_t there, std::size_t bytes) {
  PinnedMirror mirror{there, bytes, std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1))};
  void* const memory = mirror.memory.get();
  const std::lock_guard lock(mutex_);
  mirrors_[reinterpret_cast<std::uintptr_t>(memory)] = std::move(mirror);
  return memory;
}

std::uint64_t PinnedMirrors::remove(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == mirrors_.end()) return 0;
  const PinnedMirror mirror = std::move(found->second);
  mirrors_.erase(found);
  const auto is_gone = [&](const MirrorPiece& piece) {
    return piece.here >= mirror.memory.get() && piece.here < mirror.memory.get() + mirror.bytes;
  };
  std::erase_if(captured_reads_, is_gone);
  std::erase_if(captured_writes_, is_gone);
  std::erase_if(written_, [&](const Written& one) { return is_gone(one.piece); });
  return mirror.there;
}

PinnedMirrors::MirrorPiece PinnedMirrors::find(const void* address, std::size_t bytes) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto behind = mirrors_.upper_bound(number);
  if (behind == mirrors_.begin()) return {};
  const auto& [begin, mirror] = *std::prev(behind);
  const std::size_t offset = number - begin;
  if (offset > mirror.bytes || bytes > mirror.bytes - offset) return {};
  return {mirror.memory.get() + offset, mirror.there + offset, bytes};
}

void PinnedMirrors::note_read(const MirrorPiece& piece, bool captured) {
  if (!captured) return;
  const std::lock_guard lock(mutex_);
  captured_reads_.push_back(piece);
}

void PinnedMirrors::note_written(const MirrorPiece& piece, Stream stream, bool captured) {
  const std::lock_guard lock(mutex_);
  if (captured) {
    captured_writes_.push_back(piece);
  } else {
    written_.push_back({stream, piece});
  }
}

std::vector<PinnedMirrors::MirrorPiece> PinnedMirrors::begin_replay(Stream stream) {
  const std::lock_guard lock(mutex_);
  for (const MirrorPiece& piece : captured_writes_) written_.push_back({stream, piece});
  return captured_reads_;
}

std::vector<PinnedMirrors::MirrorPiece> PinnedMirrors::take_written(Stream stream) {
  const std::lock_guard lock(mutex_);
  std::vector<MirrorPiece> pieces;
  for (const Written& one : written_) {
    if (stream == nullptr || one.stream == stream) pieces.push_back(one.piece);
  }
  std::erase_if(written_,
                [&](const Written& one) { return stream == nullptr || one.stream == stream; });
  return pieces;
}

}  // namespace plumb::device::remote
