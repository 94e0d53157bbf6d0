// SPDX-License-Identifier: Apache-2.0
//
// A paged cache into which an op writes tokens, and the slots of these tokens. Before every launch
// the cache holds random bytes, so that a write to a wrong place changes a byte that is compared.
#pragma once

#include <plumb/ops/cache.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/problem.h"
#include "cases/tables/table_part.h"
#include "reference/cache/cache_entry.h"
#include "reference/formats/e4m3.h"

namespace plumb::cases {

struct CachePoolShape {
  std::int64_t tokens = 0;  // length of the slot mapping
  std::int64_t page = 64, block_bytes = 0;
  std::int64_t given_blocks = 0;                    // blocks of the cache; 0: as many as needed
  std::int64_t holes_percent = 0;                   // share of live tokens with a negative slot
  plumb_skipped_slots skip = PLUMB_SKIP_MINUS_ONE;  // which slots the op skips
  bool whole_blocks = false;                        // tokens fill block after block, else scattered
  bool far = false;  // blocks around 2^31 and 2^32 bytes, else side by side
  reference::Dialect dialect = reference::Dialect::e4m3fn;

  // Enough blocks for all tokens, and two more.
  std::int64_t needed_blocks() const { return (tokens + page - 1) / page + 2; }
  std::int64_t blocks() const { return given_blocks != 0 ? given_blocks : needed_blocks(); }
  BlockNumbering numbering() const { return {blocks(), block_bytes, far}; }
};

// Adds to an op's table the members of a cache that the op writes, except for `page`, which the
// caller adds. `block_bytes`: bytes from one block to the next.
void add_cache_pool(TablePart<plumb_paged_cache>& cache, const Formula& tokens, const Formula& page,
                    const Formula& block_bytes, std::string token_layout);
void place_cache_pool(const CachePoolShape& shape, TensorSpec& spec);  // places far blocks
// Fills a tensor and its gaps with random bytes, so that all codes occur, NaN too.
void fill_bytes(HostTensor& tensor, std::uint64_t seed);
// Live tokens get distinct slots, never slot 0, because a kernel may clamp -1 to it. Holes and
// padded tokens get a negative slot, or a slot of their own if the op skips none.
void fill_cache_pool(const CachePoolShape& shape, const Step& step, TensorSet& tensors);

// The cache after a launch, read token by token.
class CacheContents {
 public:
  using EntryOf = std::function<reference::CacheEntry(std::int64_t offset)>;
  // `written`: tokens that the op writes. Empty: all tokens that have a slot.
  CacheContents(const CachePoolShape& shape, const TensorSet& tensors, const EntryOf& entry_of,
                const RowMask& written = {});

  // Tokens that are written: their slot lies in the cache.
  const RowMask& written() const { return tokens_->written; }
  // Written tokens whose row of `x` is finite. Padded tokens may hold NaN and infinity, which
  // implementations quantise differently.
  RowMask judged(const HostTensor& x) const;
  // Bytes of each token in logical order, as [tokens, columns] elements of `dtype`. Tokens without
  // a slot have 0.
  HostTensor stored(std::string name, Dtype dtype,
                    std::vector<std::int64_t> reference::CacheEntry::* part) const;
  // Expects that every byte that belongs to no token of this call is unchanged.
  Expectation expect_rest() const;

 private:
  // Where each token lies in the cache.
  struct Tokens {
    std::vector<reference::CacheEntry> entries;
    std::vector<std::int64_t> blocks;  // blocks on the host
    RowMask written;
  };
  std::shared_ptr<const Origin> origin(
      std::size_t size, std::vector<std::int64_t> reference::CacheEntry::* part) const;

  const HostTensor& before_;
  const HostTensor& cache_;
  std::shared_ptr<const Tokens> tokens_;
  reference::CacheEntry any_;  // has the sizes, also if no token has a slot
};

// fp32 or u8 elements as numbers, row-major.
std::vector<double> numbers_of(const HostTensor& tensor);

}  // namespace plumb::cases
