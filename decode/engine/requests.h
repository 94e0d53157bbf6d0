// SPDX-License-Identifier: Apache-2.0
//
// Requests in progress and the blocks of the paged caches that they own.
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
  // How often not all tokens of a step were accepted: those at the same positions are others then.
  std::int64_t rejections = 0;
  std::vector<std::int32_t> blocks[kCaches];  // 0: given back
  std::vector<std::int64_t> tokens;           // keys of those that are computed

  // Key of the token at a position: of one that is computed, or of the next one there.
  std::int64_t token(std::int64_t position) const;
  // So many more tokens are in the caches.
  void count(std::int64_t more);

  // Of its entry number i: a token's position, or the number of a compressed state.
  std::int64_t slot(Cache cache, std::int64_t i, const Geometry& geometry) const;
};

// The blocks of one cache. Block 0 belongs to nobody: it is what -1 may be clamped to.
class BlockPool {
 public:
  // The order in which blocks are handed out is a permutation by the seed.
  BlockPool(std::int64_t blocks, std::uint64_t seed);
  std::int32_t take();  // throws std::runtime_error if none is left
  void share(std::int32_t block) { ++owners_[static_cast<std::size_t>(block)]; }
  // Free again when its last owner has given it back.
  void give_back(std::int32_t block);

 private:
  std::vector<std::int32_t> free_, owners_;
};

// Entries [begin, end) of a request's window that a prefix hit did not find.
struct WindowGap {
  std::int64_t begin = 0, end = 0;
};

class Requests {
 public:
  Requests(const Geometry& geometry, const RequestPolicy& policy, std::uint64_t seed);

  // Throws std::invalid_argument for a request that is there already.
  Request& admit(std::uint64_t id);
  // With the blocks of another's first `tokens` tokens. Blocks of the window that the other has
  // given back are new ones: what they have to hold is returned. Throws std::invalid_argument
  // unless these tokens are whole blocks.
  WindowGap admit_behind(std::uint64_t id, std::uint64_t other, std::int64_t tokens);
  // All requests of another engine, with the blocks that they own there.
  void adopt(const Requests& other);
  // Its blocks are the next to be handed out. Throws std::out_of_range if there is none of the id.
  void finish(std::uint64_t id);
  Request& at(std::uint64_t id) { return requests_.at(id); }
  const Request& at(std::uint64_t id) const { return requests_.at(id); }
  // Blocks for its first `tokens` tokens.
  void reserve(Request& request, std::int64_t tokens);
  // The request goes on behind what is computed: blocks that its window has left go back, if the
  // geometry frees them.
  void leave(Request& request);

  std::int64_t blocks(Cache cache) const { return geometry_.blocks(cache); }
  const std::map<std::uint64_t, Request>& all() const { return requests_; }

 private:
  void share(const Request& from, std::int64_t tokens, Request& to) const;
  WindowGap take_gap(Request& request);

  const Geometry& geometry_;
  const RequestPolicy& policy_;
  std::map<std::uint64_t, Request> requests_;
  std::vector<BlockPool> pools_;
};

}  // namespace plumb::device::decode
