// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/requests.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "decode/engine/no_free_block.h"

namespace plumb::device::decode {

namespace {

std::int64_t entries_of(Cache cache, std::int64_t tokens) {
  if (cache == Cache::c4a) return tokens / kC4a;
  if (cache == Cache::c128a) return tokens / kC128a;
  return tokens;
}

}  // namespace

std::int64_t Request::slot(Cache cache, std::int64_t i, const Geometry& geometry) const {
  const std::int64_t page = geometry.pages[static_cast<int>(cache)];
  return std::int64_t{blocks[static_cast<int>(cache)].at(static_cast<std::size_t>(i / page))} *
             page +
         i % page;
}

std::int64_t Request::token(std::int64_t position) const {
  constexpr std::int64_t kRequest = std::int64_t{1} << 32;
  constexpr std::int64_t kTokens = std::int64_t{1} << 21;  // larger than any context
  if (position < std::ssize(tokens)) return tokens[static_cast<std::size_t>(position)];
  // A token that replaces a rejected one at the same position has another key.
  return static_cast<std::int64_t>(id) * kRequest + rejections % (kRequest / kTokens) * kTokens +
         position;
}

void Request::count(std::int64_t more) {
  for (std::int64_t i = 0; i < more; ++i) tokens.push_back(token(computed + i));
  computed += more;
}

BlockPool::BlockPool(std::int64_t blocks, std::uint64_t seed)
    : free_(static_cast<std::size_t>(blocks - 1)), owners_(static_cast<std::size_t>(blocks), 0) {
  std::iota(free_.begin(), free_.end(), 1);
  for (std::size_t i = free_.size(); i > 1; --i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::swap(free_[i - 1], free_[(seed >> 33) % i]);
  }
}

std::int32_t BlockPool::take() {
  if (free_.empty()) throw NoFreeBlock();
  const std::int32_t block = free_.back();
  free_.pop_back();
  owners_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::give_back(std::int32_t block) {
  if (--owners_[static_cast<std::size_t>(block)] == 0) free_.push_back(block);
}

Requests::Requests(const Geometry& geometry, const RequestPolicy& policy, std::uint64_t seed)
    : geometry_(geometry), policy_(policy) {
  for (int cache = 0; cache < kCaches; ++cache) {
    pools_.emplace_back(blocks(static_cast<Cache>(cache)),
                        seed + static_cast<std::uint64_t>(cache));
  }
}

Request& Requests::admit(std::uint64_t id) {
  const auto [place, added] = requests_.try_emplace(id);
  if (!added) throw std::invalid_argument("request " + std::to_string(id) + " is there already");
  place->second.id = id;
  return place->second;
}

void Requests::share(const Request& from, std::int64_t tokens, Request& to) const {
  const auto refuse = [&] {
    throw std::invalid_argument("request " + std::to_string(from.id) + " has no " +
                                std::to_string(tokens) + " tokens to share");
  };
  if (tokens < 0 || tokens > from.computed) refuse();
  for (int cache = 0; cache < kCaches; ++cache) {
    if (!geometry_.has(static_cast<Cache>(cache))) continue;
    const std::int64_t page = geometry_.pages[cache];
    const std::int64_t entries = entries_of(static_cast<Cache>(cache), tokens);
    if (entries % page != 0) refuse();
    const auto first = from.blocks[cache].begin();
    const std::int64_t blocks =
        std::min(policy_.shared_blocks(entries / page), std::ssize(from.blocks[cache]));
    to.blocks[cache].assign(first, first + blocks);
  }
  to.tokens.assign(from.tokens.begin(), from.tokens.begin() + tokens);
}

// Allocates blocks that the request still reads and that it does not share (entry 0). They are the
// first ones that it reads.
WindowGap Requests::take_gap(Request& request, Cache cache) {
  const auto which = static_cast<std::size_t>(cache);
  auto& blocks = request.blocks[which];
  const std::int64_t page = geometry_.pages[which];
  const std::int64_t first = geometry_.first_read(cache, request.computed) / page;
  WindowGap gap{first * page, first * page};
  // Only tokens of the hit have contents, even if more blocks are shared than they need.
  const std::int64_t end = std::min((request.computed + page - 1) / page, std::ssize(blocks));
  for (std::int64_t i = first; i < end; ++i) {
    std::int32_t& block = blocks[static_cast<std::size_t>(i)];
    if (block != 0) break;
    block = pools_[which].take();
    gap.end += page;
  }
  return gap;
}

std::int64_t WindowGaps::begin() const {
  std::int64_t first = end();
  for (const WindowGap& gap : of) first = gap.begin < gap.end ? std::min(first, gap.begin) : first;
  return first;
}

std::int64_t WindowGaps::end() const {
  std::int64_t last = 0;
  for (const WindowGap& gap : of) last = gap.begin < gap.end ? std::max(last, gap.end) : last;
  return last;
}

WindowGaps Requests::admit_behind(std::uint64_t id, std::uint64_t other, std::int64_t tokens) {
  Request to{.id = id, .computed = policy_.hit_tokens(geometry_, tokens)};
  share(at(other), tokens, to);
  Request& place = admit(id);
  for (int cache = 0; cache < kCaches; ++cache) {
    auto& pool = pools_[static_cast<std::size_t>(cache)];
    for (const std::int32_t block : to.blocks[cache]) {
      if (block != 0 && policy_.counts_sharer()) pool.share(block);
    }
  }
  place = std::move(to);
  WindowGaps gaps;
  for (const Cache cache : kOfTokens) {
    if (geometry_.frees(cache)) gaps.of[static_cast<int>(cache)] = take_gap(place, cache);
  }
  return gaps;
}

void Requests::adopt(const Requests& other) {
  requests_ = other.requests_;
  pools_ = other.pools_;
}

void Requests::finish(std::uint64_t id) {
  Request& request = requests_.at(id);
  for (int cache = 0; cache < kCaches; ++cache) {
    auto& pool = pools_[static_cast<std::size_t>(cache)];
    for (const std::int32_t block : request.blocks[cache]) {
      if (block != 0 && policy_.gives_back_at_end()) pool.give_back(block);
    }
  }
  requests_.erase(id);
}

void Requests::leave(Request& request) {
  for (const Cache cache : kOfTokens) {
    if (geometry_.frees(cache)) leave(request, cache);
  }
}

void Requests::leave(Request& request, Cache cache) {
  const auto which = static_cast<std::size_t>(cache);
  const std::int64_t end =
      policy_.leaves_before(geometry_, cache, geometry_.first_kept(cache, request.computed));
  auto& blocks = request.blocks[which];
  for (std::int64_t i = std::min(end / geometry_.pages[which], std::ssize(blocks)); i-- > 0;) {
    std::int32_t& block = blocks[static_cast<std::size_t>(i)];
    if (block == 0) return;
    pools_[which].give_back(block);
    if (policy_.forgets_left_blocks()) block = 0;
  }
}

void Requests::reserve(Request& request, std::int64_t tokens) {
  for (int cache = 0; cache < kCaches; ++cache) {
    if (!geometry_.has(static_cast<Cache>(cache))) continue;
    const std::int64_t page = geometry_.pages[cache];
    const std::int64_t entries = entries_of(static_cast<Cache>(cache), tokens);
    auto& blocks = request.blocks[cache];
    while (static_cast<std::int64_t>(blocks.size()) * page < entries) {
      blocks.push_back(pools_[static_cast<std::size_t>(cache)].take());
    }
  }
}

}  // namespace plumb::device::decode
