// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/geometry.h"

#include <algorithm>

namespace plumb::device::decode {

namespace {

std::int64_t window_of(const Geometry& geometry, Cache cache) {
  switch (cache) {
    case Cache::c4a_partial: return kC4aWindow;
    case Cache::c128a_partial: return kC128aWindow;
    default: return geometry.window;
  }
}

// Blocks of the partial states in vLLM   [10.1].
void add_partial_states(Geometry& g) {
  g.pages[static_cast<int>(Cache::c4a_partial)] = 4;
  g.pages[static_cast<int>(Cache::c128a_partial)] = 8;
}

}  // namespace

std::int64_t block_bytes(std::int64_t page) {
  constexpr std::int64_t kEntry = 584;
  return (page * kEntry + kEntryData - 1) / kEntryData * kEntryData;
}

std::int64_t Geometry::entries(Cache cache) const {
  switch (cache) {
    case Cache::c4a: return max_context / kC4a;
    case Cache::c128a: return max_context / kC128a;
    default: return max_context;
  }
}

std::int64_t Geometry::blocks_per_request(Cache cache) const {
  if (!has(cache)) return 0;
  const std::int64_t page = pages[static_cast<int>(cache)];
  return (entries(cache) + page - 1) / page;
}

// Blocks that requests hold for `max_requests`, plus blocks for the tokens of one step (at most
// max_tokens), plus block 0. A window of W tokens lies in at most (W - 1) / page + 2 blocks. The
// tokens of a step may begin one block more of each request's partial states.
std::int64_t Geometry::blocks(Cache cache) const {
  std::int64_t of_request = blocks_per_request(cache), of_step = 0;
  if (frees(cache)) {
    const std::int64_t page = pages[static_cast<int>(cache)];
    const std::int64_t begun = cache == Cache::window ? 0 : 1;
    of_request = std::min(of_request, (window_of(*this, cache) - 1) / page + 2 + begun);
    of_step = max_tokens() / page + 1;
  }
  return max_requests * of_request + of_step + 1;
}

bool Geometry::frees(Cache cache) const {
  if (cache == Cache::window) return frees_window;
  return has(cache) && (cache == Cache::c4a_partial || cache == Cache::c128a_partial);
}

std::int64_t Geometry::first_kept(Cache cache, std::int64_t computed) const {
  if (!frees(cache)) return 0;
  return std::max<std::int64_t>(computed - window_of(*this, cache) + 1, 0);
}

// The next compressed state ends with the group of token `computed`. Its window begins with this
// group (C128A) or with the group before it (C4A).
std::int64_t Geometry::first_read(Cache cache, std::int64_t computed) const {
  switch (cache) {
    case Cache::c4a_partial: return std::max<std::int64_t>(computed / kC4a * kC4a - kC4a, 0);
    case Cache::c128a_partial: return computed / kC128a * kC128a;
    default: return first_kept(cache, computed);
  }
}

std::int64_t Geometry::attended_states(Attention kind) const {
  switch (kind) {
    case Attention::c4a: return top_k;
    case Attention::c128a: return c128a_width();
    default: return 0;
  }
}

std::int64_t Geometry::state_rows(Attention kind) const {
  switch (kind) {
    case Attention::c4a: return (max_context + kC4a - 1) / kC4a;
    case Attention::c128a: return (max_context + kC128a - 1) / kC128a;
    default: return 0;
  }
}

Geometry small_geometry(std::int64_t max_requests, std::int64_t speculated,
                        std::int64_t max_batched_tokens) {
  Geometry g;
  g.layers = {Attention::window, Attention::c4a, Attention::c128a};
  g.hidden = 128;
  g.heads = 1;
  g.q_lora = 64;
  g.index_heads = 4;
  g.index_dim = 128;
  g.top_k = 16;
  g.index_split = 32;
  g.experts = 16;
  g.experts_per_token = 4;
  g.window = 16;
  g.pages[static_cast<int>(Cache::window)] = 8;
  g.pages[static_cast<int>(Cache::c4a)] = 4;
  g.pages[static_cast<int>(Cache::c128a)] = 1;
  add_partial_states(g);
  g.max_requests = max_requests;
  g.max_context = 384;
  g.speculated = speculated;
  g.max_batched_tokens = max_batched_tokens;
  g.plan_parts = 4;
  g.plan_block = 16;
  g.capture_sizes = default_capture_sizes(g);
  return g;
}

Geometry small_v32_geometry(std::int64_t max_requests, std::int64_t speculated, std::int64_t page,
                            std::int64_t max_batched_tokens) {
  Geometry g;
  g.architecture = Architecture::v32;
  g.model = "V3.2";
  g.routed_scaling = 2.5F;
  g.layers = {Attention::tokens, Attention::tokens};
  g.hidden = 128;
  g.heads = 2;
  g.q_lora = 64;
  g.index_heads = 4;
  g.index_dim = 64;
  g.top_k = 128;
  g.index_ratio = 1;
  g.index_split = 128;
  g.experts = 16;
  g.experts_per_token = 4;
  g.expert_groups = 4;
  g.kept_groups = 2;
  g.pages[static_cast<int>(Cache::window)] = page;
  g.max_requests = max_requests;
  g.max_context = 384;
  g.speculated = speculated;
  g.max_batched_tokens = max_batched_tokens;
  g.plan_parts = 4;
  g.capture_sizes = default_capture_sizes(g);
  return g;
}

namespace {

// Sizes common to both models. Few batch sizes are captured, because a watched engine keeps a
// record for each captured size.
Geometry served(std::int64_t max_requests) {
  Geometry g;
  g.hidden = 7168;
  g.heads = 16;
  g.q_lora = 1536;
  g.index_heads = 64;
  g.index_dim = 128;
  g.max_requests = max_requests;
  g.plan_parts = 132;
  for (const std::int64_t size : {8, 64, 256, 384, 512}) {
    if (size <= std::max<std::int64_t>(max_requests, 8)) g.capture_sizes.push_back(size);
  }
  return g;
}

}  // namespace

Geometry production_geometry(std::int64_t max_requests, std::int64_t max_batched_tokens) {
  Geometry g = served(max_requests);
  g.model = "V4-Pro";
  g.routed_scaling = 2.5F;
  g.layers = {Attention::window, Attention::c4a, Attention::c128a};
  g.top_k = 1024;
  g.experts = 384;
  g.experts_per_token = 6;
  g.window = 128;
  g.pages[static_cast<int>(Cache::window)] = 64;
  g.pages[static_cast<int>(Cache::c4a)] = 64;
  g.pages[static_cast<int>(Cache::c128a)] = 2;
  add_partial_states(g);
  g.frees_window = true;
  g.max_context = (1024 + 128) * kC4a;
  g.max_batched_tokens = max_batched_tokens;
  g.drafter = true;
  return g;
}

Geometry production_v32_geometry(std::int64_t max_requests, std::int64_t max_batched_tokens) {
  Geometry g = served(max_requests);
  g.architecture = Architecture::v32;
  g.model = "V3.2";
  g.routed_scaling = 2.5F;
  g.layers = {Attention::tokens, Attention::tokens};
  g.top_k = 2048;
  g.index_ratio = 1;
  g.experts = 256;
  g.experts_per_token = 8;
  g.expert_groups = 8;
  g.kept_groups = 4;
  g.pages[static_cast<int>(Cache::window)] = 64;
  g.max_context = 2048 + 256;
  g.max_batched_tokens = max_batched_tokens;
  return g;
}

std::vector<std::int64_t> default_capture_sizes(const Geometry& g) {
  const std::int64_t query_tokens = g.query_tokens();
  const std::int64_t most =
      std::min({2 * g.max_decode_tokens(), std::int64_t{512}, g.max_tokens()});
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    const std::int64_t rounded = (size + query_tokens - 1) / query_tokens * query_tokens;
    if (rounded <= most && (sizes.empty() || sizes.back() < rounded)) sizes.push_back(rounded);
  };
  for (const std::int64_t size : {1, 2, 4}) add(size);
  for (std::int64_t size = 8; size < 256; size += 8) add(size);
  for (std::int64_t size = 256; size <= 512; size += 16) add(size);
  return sizes;
}

}  // namespace plumb::device::decode
