// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a model and of the batches and caches that serve it   [ops-spec 0].
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb::device::decode {

enum class Architecture { v4, v32 };

// What a V4 layer attends in addition to its sliding window: nothing (`window`), the top-k of the
// states that each compress 4 tokens (`c4a`), or all states that each compress 128 tokens
// (`c128a`). V3.2 layers have no window: `tokens` is the top-k of the whole context.
enum class Attention { window, c4a, c128a, tokens };

// Paged caches. Each has a block table of its own. An entry of `window` is one token, one of `c4a`
// or `c128a` a compressed state. An entry of `c4a_partial` or `c128a_partial` is the partial state
// of one token, from which the compressor makes compressed states. V3.2 keeps its whole context in
// `window` and has no other cache.
enum class Cache { window, c4a, c128a, c4a_partial, c128a_partial };
inline constexpr int kCaches = 5;
inline constexpr Cache kCompressed[] = {Cache::c4a, Cache::c128a};
inline constexpr Cache kOfTokens[] = {Cache::window, Cache::c4a_partial, Cache::c128a_partial};

// Layout of the candidate lists for V4's attention: ragged (packed, with an indptr), as on ROCm, or
// dense (rows of equal width, with lengths), as FlashMLA takes them.
enum class Lists { ragged, dense };

inline constexpr std::int64_t kHeadDim = 512, kRopeDim = 64, kStreams = 4;
inline constexpr std::int64_t kIndexScaleBytes = 4;    // after an index key's codes   [5.4]
inline constexpr std::int64_t kC4a = 4, kC128a = 128;  // tokens per compressed state
// Tokens whose partial states are compressed into one state: two groups, one group   [10.1].
inline constexpr std::int64_t kC4aWindow = 2 * kC4a, kC128aWindow = kC128a;
inline constexpr std::int64_t kPrefillRequests = 4;  // per chunk of prefills   [2.8]

// Bytes of a token's or state's elements in V4's caches [1.1].
inline constexpr std::int64_t kEntryData = 576;
// Bytes of a block of `page` tokens or states, 584 bytes each, rounded up to a multiple of
// kEntryData [1.1].
std::int64_t block_bytes(std::int64_t page);

struct Geometry {
  Architecture architecture = Architecture::v4;
  std::string_view model = "V4-Flash";  // source of all constants but sizes
  Lists lists = Lists::ragged;
  std::vector<Attention> layers;
  std::int64_t hidden = 0, heads = 0, q_lora = 0;
  std::int64_t index_heads = 0, index_dim = 0, top_k = 0;
  std::int64_t index_ratio = kC4a;  // tokens per entry that the indexer scores
  std::int64_t index_split = 256;   // entries per segment of the indexer's schedule
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t expert_groups = 0, kept_groups = 0;  // V3.2 only
  float routed_scaling = 1.5F;
  std::int64_t window = 0;
  std::int64_t pages[kCaches] = {};  // entries per block; 0: no such cache
  // Whether V4's window blocks are given back once no later token sees them. The block table then
  // holds 0 there.
  bool frees_window = false;
  std::int64_t max_requests = 0, max_context = 0;  // max_context: tokens per request
  std::int64_t speculated = 0;                     // query tokens per request after the first
  std::int64_t max_batched_tokens = 0;             // of a step with prefills; 0: no prefills
  // Parts of the tile plan, and slots of the indexer's schedule; candidates per block of the plan.
  std::int64_t plan_parts = 0, plan_block = 64;
  std::vector<std::int64_t> capture_sizes;  // in tokens, ascending
  bool drafter = false;                     // a drafter step follows each step of the target
  bool fnuz = false;  // caches that hold e4m3fnuz on gfx942 hold it on every platform

  std::int64_t query_tokens() const { return 1 + speculated; }
  std::int64_t max_decode_tokens() const { return max_requests * query_tokens(); }
  std::int64_t max_tokens() const { return std::max(max_decode_tokens(), max_batched_tokens); }
  std::int64_t entries(Cache cache) const;  // entries of one request of max_context tokens
  std::int64_t blocks_per_request(Cache cache) const;
  std::int64_t blocks(Cache cache) const;  // blocks of the whole cache, block 0 included
  // Largest number of compressed states that a token attends.
  std::int64_t attended_states(Attention kind) const;
  // Rows of one request in the prefill workspace: compressed states, then tokens   [2.8].
  std::int64_t state_rows(Attention kind) const;
  std::int64_t workspace_rows(Attention kind) const {
    return state_rows(kind) + window + max_tokens();
  }
  bool has(Cache cache) const { return pages[static_cast<int>(cache)] != 0; }
  // Whether blocks are given back once no later token reads them.
  bool frees(Cache cache) const;
  // First entry whose block is kept behind `computed` tokens: the window of the next token [10.1].
  std::int64_t first_kept(Cache cache, std::int64_t computed) const;
  // First entry that tokens from `computed` on read. A prefix hit needs no earlier ones.
  std::int64_t first_read(Cache cache, std::int64_t computed) const;
  std::int64_t states() const { return max_context / index_ratio; }  // columns of the logits
  std::int64_t c128a_width() const { return max_context / kC128a; }  // c128a_max_compressed

  bool operator==(const Geometry&) const = default;
};

// Few heads and short contexts, so that a step costs milliseconds on the simulator. The steps still
// cross every boundary (window, k, pages, states).
Geometry small_geometry(std::int64_t max_requests = 16, std::int64_t speculated = 0,
                        std::int64_t max_batched_tokens = 0);
// Two layers of V3.2. top-k is a multiple of 128. `page`: 64 or 1 tokens per block.
Geometry small_v32_geometry(std::int64_t max_requests = 16, std::int64_t speculated = 0,
                            std::int64_t page = 64, std::int64_t max_batched_tokens = 0);
// V4-Pro (three layers, one of each kind) and V3.2 (two layers) as one rank of eight serves them
// [0]. Contexts are longer than the top-k, so that the top-k selects. For a real device.
Geometry production_geometry(std::int64_t max_requests = 512,
                             std::int64_t max_batched_tokens = 1024);
Geometry production_v32_geometry(std::int64_t max_requests = 512,
                                 std::int64_t max_batched_tokens = 1024);

// Sizes 1, 2, 4, then multiples of 8, from 256 on multiples of 16; at most twice the number of
// decode tokens, 512 and max_tokens. With speculation they are rounded up to multiples of the query
// length   [10.2].
std::vector<std::int64_t> default_capture_sizes(const Geometry& geometry);

}  // namespace plumb::device::decode
