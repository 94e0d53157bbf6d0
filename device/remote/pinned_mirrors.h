// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory of a device in another process: a mirror here for each piece there. What a copy
// will read is sent when it is enqueued, or its graph replayed; what it wrote is fetched when
// somebody has waited for it. Between these points the two may differ.
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
  // A piece of a mirror, and where it is there.
  struct MirrorPiece {
    std::byte* here = nullptr;
    std::uint64_t there = 0;
    std::size_t bytes = 0;
  };

  void* add(std::uint64_t there, std::size_t bytes);
  // Its address there; 0 if it is no mirror.
  std::uint64_t remove(void* mirror);
  // bytes == 0: the address lies in no mirror.
  MirrorPiece find(const void* address, std::size_t bytes) const;

  // A copy was enqueued that reads or writes the piece.
  void note_read(const MirrorPiece& piece, bool captured);
  void note_written(const MirrorPiece& piece, Stream stream, bool captured);
  // Pieces that captured copies read: to be sent before a replay, after which the pieces that they
  // write are awaited on the stream.
  std::vector<MirrorPiece> begin_replay(Stream stream);
  // Pieces that work of a stream, or of all (nullptr), has written. Forgets them.
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
