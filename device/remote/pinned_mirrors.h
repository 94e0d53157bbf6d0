// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory of a device in another process: each allocation there has a mirror here. Bytes that
// a copy will read are sent when it is enqueued, or when its graph is replayed. Bytes that a copy
// wrote are fetched when the caller has waited for it. Meanwhile mirror and original may differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace plumb::device::remote {

class PinnedMirrors {
 public:
  // A piece of a mirror here, and its address in the other process.
  struct MirrorPiece {
    std::byte* here = nullptr;
    std::uint64_t there = 0;
    std::size_t bytes = 0;
  };

  void* add(std::uint64_t there, std::size_t bytes);
  // Returns the address in the other process; 0 if this is no mirror.
  std::uint64_t remove(void* mirror);
  // here == nullptr: the range is in no mirror.
  MirrorPiece find(const void* address, std::size_t bytes) const;

  // Called when a copy that reads or writes the piece has been enqueued.
  void note_read(const MirrorPiece& piece, bool captured);
  void note_written(const MirrorPiece& piece, Stream stream, bool captured);
  // Called before a replay. Returns the pieces that captured copies read: they have to be sent
  // first. Pieces that captured copies write count as written on the stream.
  std::vector<MirrorPiece> begin_replay(Stream stream);
  // Removes and returns the pieces written by work of a stream, or of all streams (nullptr).
  std::vector<MirrorPiece> take_written(Stream stream);

 private:
  struct PinnedMirror {
    std::uint64_t there = 0;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> memory;
  };
  struct Written {
    Stream stream;
    MirrorPiece piece;
  };

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, PinnedMirror> mirrors_;
  std::vector<MirrorPiece> captured_reads_, captured_writes_;
  std::vector<Written> written_;
};

}  // namespace plumb::device::remote
