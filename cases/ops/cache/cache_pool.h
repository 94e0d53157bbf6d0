// SPDX-License-Identifier: Apache-2.0
//
// A paged cache that an op writes tokens into, and the slots that they go to. Before every launch
// it holds other tokens' bytes, so that whatever is written where it does not belong shows.
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
  std::int64_t given_blocks = 0;                    // of the cache; 0: as many as needed
  std::int64_t holes_percent = 0;                   // live tokens with a negative slot
  plumb_skipped_slots skip = PLUMB_SKIP_MINUS_ONE;  // which negative slots there are
  bool whole_blocks = false;  // slots of a block follow one another, else scattered
  bool far = false;           // blocks around 2^31 and 2^32 bytes, else side by side
  reference::Dialect dialect = reference::Dialect::e4m3fn;

  // That exist: enough for all tokens, and two that stay empty wherever that is.
  std::int64_t needed_blocks() const { return (tokens + page - 1) / page + 2; }
  std::int64_t blocks() const { return given_blocks != 0 ? given_blocks : needed_blocks(); }
  BlockNumbering numbering() const { return {blocks(), block_bytes, far}; }
};

// The members of a cache that an op writes, beside its page. A block has so many bytes.
void add_cache_pool(TablePart<plumb_paged_cache>& cache, const Formula& tokens, const Formula& page,
                    const Formula& block_bytes, std::string token_layout);
void place_cache_pool(const CachePoolShape& shape, TensorSpec& spec);  // far blocks
// Random bytes throughout, gaps included: every code, NaN among them.
void fill_bytes(HostTensor& tensor, std::uint64_t seed);
// Distinct slots in no order for the live tokens, never slot 0, to which a -1 may be clamped. A
// negative slot for the others, if the op skips any; else a slot of their own.
void fill_cache_pool(const CachePoolShape& shape, const Step& step, TensorSet& tensors);

// What the device made of the cache.
class CacheContents {
 public:
  using EntryOf = std::function<reference::CacheEntry(std::int64_t offset)>;
  // `written`: tokens that are written; empty: all that have a slot.
  CacheContents(const CachePoolShape& shape, const TensorSet& tensors, const EntryOf& entry_of,
                const RowMask& written = {});

  // Tokens whose slot is in the cache.
  const RowMask& written() const { return tokens_->written; }
  // Tokens that have a slot and are finite in `x`. (Implementations differ in what they make of NaN
  // and infinity, which padded tokens may have.)
  RowMask judged(const HostTensor& x) const;
  // Bytes of each token in logical order, [tokens, columns] elements of `dtype`; 0 for tokens
  // without a slot.
  HostTensor stored(std::string name, Dtype dtype,
                    std::vector<std::int64_t> reference::CacheEntry::* part) const;
  // Every byte that belongs to no token of this call is as it was.
  Expectation expect_rest() const;

 private:
  // Where tokens are in the cache.
  struct Tokens {
    std::vector<reference::CacheEntry> entries;
    std::vector<std::int64_t> blocks;  // on the host
    RowMask written;
  };
  std::shared_ptr<const Origin> origin(
      std::size_t size, std::vector<std::int64_t> reference::CacheEntry::* part) const;

  const HostTensor& before_;
  const HostTensor& cache_;
  std::shared_ptr<const Tokens> tokens_;
  reference::CacheEntry any_;  // for the sizes, where no token has a slot
};

// fp32 or u8 elements as numbers, row-major.
std::vector<double> numbers_of(const HostTensor& tensor);

}  // namespace plumb::cases
