// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a model and of its serving   [ops-spec 0].
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb::device::decode {

enum class Architecture { v4, v32 };

// What a layer of V4 attends beside its sliding window: nothing, the best of the states that stand
// for 4 tokens each, or all states that stand for 128 tokens each. Layers of V3.2 have no window:
// `tokens`, the best of the whole context.
enum class Attention { window, c4a, c128a, tokens };

// A paged cache per kind, with a block table of its own. An entry of `window` is a token: V3.2
// keeps its whole context there, and has no other.
enum class Cache { window, c4a, c128a };
inline constexpr int kCaches = 3;

// How lists of candidates reach V4's attention: packed, as on ROCm, or in rows of one width with
// their lengths, as FlashMLA takes them.
enum class Lists { ragged, dense };

inline constexpr std::int64_t kHeadDim = 512, kRopeDim = 64, kStreams = 4;
inline constexpr std::int64_t kIndexScaleBytes = 4;    // beside the codes of an index key   [5.4]
inline constexpr std::int64_t kC4a = 4, kC128a = 128;  // tokens of a compressed state
inline constexpr std::int64_t kPrefillRequests = 4;    // of a chunk, which shares a workspace [2.8]

// Of a block of so many tokens or states, 584 bytes each: a multiple of the 576 that hold one's
// data [1.1].
std::int64_t block_bytes(std::int64_t page);

struct Geometry {
  Architecture architecture = Architecture::v4;
  std::string_view model = "V4-Flash";  // whose constants the step has, whatever its sizes
  Lists lists = Lists::ragged;
  std::vector<Attention> layers;
  std::int64_t hidden = 0, heads = 0, q_lora = 0;
  std::int64_t index_heads = 0, index_dim = 0, top_k = 0;
  std::int64_t index_ratio = kC4a;  // tokens of an entry that the indexer scores
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t expert_groups = 0, kept_groups = 0;  // V3.2
  float routed_scaling = 1.5F;
  std::int64_t window = 0;
  std::int64_t pages[kCaches] =
      {};  // entries of a block: tokens, or compressed states; 0: no cache
  // Do blocks of V4's window go back when no later token sees them? Block tables say 0 there.
  bool frees_window = false;
  std::int64_t max_requests = 0, max_context = 0;  // tokens of a request
  std::int64_t speculated = 0;                     // query tokens of a request beyond the first
  std::int64_t max_batched_tokens = 0;             // of a step with prefills; 0: there are none
  std::int64_t plan_parts = 0, plan_block = 64;    // of the tile plan; candidates of its blocks
  std::vector<std::int64_t> capture_sizes;         // tokens, ascending
  bool drafter = false;                            // a step of it follows each of the target
  bool fnuz = false;  // caches hold e4m3fnuz where they do on gfx942, whatever the platform

  std::int64_t query_tokens() const { return 1 + speculated; }
  std::int64_t max_decode_tokens() const { return max_requests * query_tokens(); }
  std::int64_t max_tokens() const { return std::max(max_decode_tokens(), max_batched_tokens); }
  std::int64_t entries(Cache cache) const;  // of a request of max_context tokens
  std::int64_t blocks_per_request(Cache cache) const;
  std::int64_t blocks(Cache cache) const;  // of the whole cache, block 0 included
  // Most compressed states that a token attends.
  std::int64_t attended_states(Attention kind) const;
  // Rows of the prefill workspace of a request: compressed states, then tokens   [2.8].
  std::int64_t state_rows(Attention kind) const;
  std::int64_t workspace_rows(Attention kind) const {
    return state_rows(kind) + window + max_tokens();
  }
  bool has(Cache cache) const { return pages[static_cast<int>(cache)] != 0; }
  std::int64_t states() const { return max_context / index_ratio; }  // columns of the indexer
  std::int64_t c128a_width() const { return max_context / kC128a; }  // c128a_max_compressed

  bool operator==(const Geometry&) const = default;
};

// A few heads and short contexts, so that a step costs the simulator milliseconds; every boundary
// (window, k, pages, states) is met all the same.
Geometry small_geometry(std::int64_t max_requests = 16, std::int64_t speculated = 0,
                        std::int64_t max_batched_tokens = 0);
// Two layers of V3.2, whose top-k is a multiple of 128. Pages are of 64 tokens or of one.
Geometry small_v32_geometry(std::int64_t max_requests = 16, std::int64_t speculated = 0,
                            std::int64_t page = 64, std::int64_t max_batched_tokens = 0);
// V4-Pro and V3.2 as a rank of eight serves them   [0]: three layers, one of each kind, and two;
// contexts of more tokens, or states, than the top-k keeps. For a real device.
Geometry production_geometry(std::int64_t max_requests = 512,
                             std::int64_t max_batched_tokens = 1024);
Geometry production_v32_geometry(std::int64_t max_requests = 512,
                                 std::int64_t max_batched_tokens = 1024);

// 1, 2, 4, 8, 16, ..., up to twice the tokens that decode, 512 at most, cut at max_tokens; with
// speculation rounded up to multiples of the query length   [10.2]
std::vector<std::int64_t> default_capture_sizes(const Geometry& geometry);

}  // namespace plumb::device::decode
