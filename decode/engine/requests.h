// SPDX-License-Identifier: Apache-2.0
//
// Requests in progress, and the blocks of the paged caches that each owns.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/policies/request_policy.h"

namespace plumb::device::decode {

struct Request {
  std::uint64_t id = 0;
  std::int64_t computed = 0;  // tokens whose entries are in the caches
  // Steps in which some tokens were rejected. The tokens that later take these positions are other
  // tokens, so their keys differ.
  std::int64_t rejections = 0;
  std::vector<std::int32_t> blocks[kCaches];  // block tables; 0: block was given back
  std::vector<std::int64_t> tokens;           // keys of the computed tokens

  // Key of the token at a position, either computed or the next one to be computed there.
  std::int64_t token(std::int64_t position) const;
  // Counts `more` further tokens as computed.
  void count(std::int64_t more);

  // Slot of entry i: i is the position of a token, or the number of a compressed state.
  std::int64_t slot(Cache cache, std::int64_t i, const Geometry& geometry) const;
};

// The blocks of one cache. No request gets block 0: a slot of -1 may be clamped to it.
class BlockPool {
 public:
  // The seed permutes the order in which blocks are handed out.
  BlockPool(std::int64_t blocks, std::uint64_t seed);
  std::int32_t take();  // throws NoFreeBlock (a std::runtime_error) if no block is left
  void share(std::int32_t block) { ++owners_[static_cast<std::size_t>(block)]; }
  // The block is free again once its last owner has given it back.
  void give_back(std::int32_t block);

 private:
  std::vector<std::int32_t> free_, owners_;
};

// Entries [begin, end) that tokens of a request read and that a prefix hit did not find in shared
// blocks.
struct WindowGap {
  std::int64_t begin = 0, end = 0;
  bool has(std::int64_t entry) const { return begin <= entry && entry < end; }
};
// By cache. Caches of compressed states have no gaps.
struct WindowGaps {
  WindowGap of[kCaches];
  const WindowGap& operator[](Cache cache) const { return of[static_cast<int>(cache)]; }
  // First token of a gap, and the token behind the last one. Both 0: there is no gap.
  std::int64_t begin() const;
  std::int64_t end() const;
};

class Requests {
 public:
  Requests(const Geometry& geometry, const RequestPolicy& policy, std::uint64_t seed);

  // Throws std::invalid_argument if the request exists already.
  Request& admit(std::uint64_t id);
  // Adds a request that shares the blocks of the first `tokens` tokens of `other`. Blocks that
  // `other` has given back and that the request's tokens read are allocated anew; returns the
  // entries that the caller must fill. Throws std::invalid_argument unless these tokens fill whole
  // blocks.
  WindowGaps admit_behind(std::uint64_t id, std::uint64_t other, std::int64_t tokens);
  // Copies all requests of another engine, with the block numbers that they own there.
  void adopt(const Requests& other);
  // Removes the request. Its blocks that no other request shares are the next to be handed out.
  // Throws std::out_of_range if no request has this id.
  void finish(std::uint64_t id);
  Request& at(std::uint64_t id) { return requests_.at(id); }
  const Request& at(std::uint64_t id) const { return requests_.at(id); }
  // Allocates blocks for the first `tokens` tokens of the request.
  void reserve(Request& request, std::int64_t tokens);
  // Gives back blocks that lie before the window of the next token, in caches that free them.
  void leave(Request& request);

  std::int64_t blocks(Cache cache) const { return geometry_.blocks(cache); }
  const std::map<std::uint64_t, Request>& all() const { return requests_; }

 private:
  void share(const Request& from, std::int64_t tokens, Request& to) const;
  WindowGap take_gap(Request& request, Cache cache);
  void leave(Request& request, Cache cache);

  const Geometry& geometry_;
  const RequestPolicy& policy_;
  std::map<std::uint64_t, Request> requests_;
  std::vector<BlockPool> pools_;
};

}  // namespace plumb::device::decode
