// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/cache/cache_pool.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::CacheEntry;

// Slots as engines assign them: in order within a block, blocks in random order.
std::vector<std::int64_t> slots_of_blocks(const CachePoolShape& shape, std::uint64_t seed) {
  std::vector<std::int64_t> slots;
  for (const std::int64_t block : permuted_blocks(shape.blocks(), seed)) {
    for (std::int64_t i = 0; i < shape.page; ++i) slots.push_back(block * shape.page + i);
  }
  return slots;
}

// Distinct slots in random order, never slot 0. The first token has the last slot, the farthest.
std::vector<std::int64_t> shuffled_slots(const CachePoolShape& shape, std::uint64_t seed) {
  if (shape.whole_blocks) return slots_of_blocks(shape, seed);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(shape.blocks() * shape.page - 1));
  std::iota(slots.begin(), slots.end(), 1);
  std::swap(slots.front(), slots.back());
  for (std::size_t i = 1; i < slots.size() && static_cast<std::int64_t>(i) < shape.tokens; ++i) {
    const auto other =
        integer(seed, i, static_cast<std::int64_t>(i), static_cast<std::int64_t>(slots.size()) - 1);
    std::swap(slots[i], slots[static_cast<std::size_t>(other)]);
  }
  return slots;
}

// The slot of a token that must not be written: -1, or any negative number if the op skips these.
std::int64_t negative_slot(const CachePoolShape& shape, std::uint64_t bits) {
  if (shape.skip == PLUMB_SKIP_MINUS_ONE) return -1;
  const std::int64_t holes[] = {-1, -2, -shape.page, -shape.page - 1};
  return holes[bits % std::size(holes)];
}

}  // namespace

void fill_bytes(HostTensor& tensor, std::uint64_t seed) {
  std::byte* bytes = tensor.bytes().data();
  const std::size_t size = tensor.bytes().size();
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t random = random_bits(seed, i);
    std::memcpy(bytes + i, &random, std::min<std::size_t>(8, size - i));
  }
}

void add_cache_pool(TablePart<plumb_paged_cache>& cache, const Formula& tokens, const Formula& page,
                    const Formula& block_bytes, std::string token_layout) {
  using C = plumb_paged_cache;
  const Formula bytes = cache.scalar("block_stride_bytes", &C::block_stride_bytes, block_bytes);
  const Formula dialect = cache.word("dialect", &C::dialect, dialect_words("dialect"));
  const Formula blocks = or_else(parameter("blocks"), div_up(tokens, page) + 2);
  const Formula numbered = computed("blocks", [=](const FormulaValues& values) {
    return BlockNumbering{blocks.value(values), bytes.value(values),
                          values.row->integer("far") != 0}
        .num_blocks();
  });
  cache.scalar("num_blocks", &C::num_blocks, in_call(numbered, parameter("blocks")));
  cache.in_place("data", &C::data, {blocks, bytes}, "other tokens keep their bytes")
      .named("cache")
      .codes(dialect, std::move(token_layout));
}

void place_cache_pool(const CachePoolShape& shape, TensorSpec& spec) {
  if (spec.name.starts_with("cache")) shape.numbering().place(spec);
}

void fill_cache_pool(const CachePoolShape& shape, const Step& step, TensorSet& tensors) {
  check_blocks(shape.blocks(), shape.needed_blocks());
  fill_bytes(tensors.at("cache_before"), mix(step.seed, 101));
  const std::vector<std::int64_t> slots = shuffled_slots(shape, mix(step.seed, 102));
  const std::uint64_t holes = mix(step.seed, 103);
  const BlockNumbering blocks = shape.numbering();
  auto* mapping = tensors.at("slot_mapping").data<std::int64_t>();
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const std::uint64_t bits = random_bits(holes, static_cast<std::uint64_t>(token));
    const bool is_hole =
        token >= step.live || static_cast<std::int64_t>(bits % 100) < shape.holes_percent;
    const std::int64_t slot = slots[static_cast<std::size_t>(token)];
    mapping[token] = is_hole && shape.skip != PLUMB_SKIP_NEVER
                         ? negative_slot(shape, bits >> 32)
                         : blocks.address(slot / shape.page) * shape.page + slot % shape.page;
  }
}

CacheContents::CacheContents(const CachePoolShape& shape, const TensorSet& tensors,
                             const EntryOf& entry_of, const RowMask& written)
    : before_(tensors.at("cache_before")), cache_(tensors.at("cache")), any_(entry_of(0)) {
  const auto* slots = tensors.at("slot_mapping").data<std::int64_t>();
  const BlockNumbering blocks = shape.numbering();
  auto tokens = std::make_shared<Tokens>();
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const std::int64_t slot = is_promised(written, token) ? slots[token] : -1;
    const std::int64_t block = slot < 0 ? -1 : blocks.block_at(slot / shape.page);
    tokens->written.push_back(block >= 0);
    tokens->blocks.push_back(block);
    tokens->entries.push_back(block >= 0 ? entry_of(slot % shape.page) : CacheEntry{});
  }
  tokens_ = std::move(tokens);
}

RowMask CacheContents::judged(const HostTensor& x) const {
  RowMask judged = tokens_->written;
  const RowMask finite = finite_rows(x);
  for (std::size_t token = 0; token < judged.size(); ++token) {
    judged[token] = judged[token] && finite[token];
  }
  return judged;
}

HostTensor CacheContents::stored(std::string name, Dtype dtype,
                                 std::vector<std::int64_t> CacheEntry::* part) const {
  const auto tokens = static_cast<std::int64_t>(tokens_->entries.size());
  const auto columns = static_cast<std::int64_t>((any_.*part).size() / size_of(dtype));
  TensorSpec spec{.name = std::move(name), .dtype = dtype, .shape = {tokens, columns}};
  spec.origin = origin(size_of(dtype), part);
  HostTensor tensor(std::move(spec));
  std::byte* to = tensor.bytes().data();
  for (std::size_t token = 0; token < tokens_->entries.size(); ++token, to += (any_.*part).size()) {
    if (!tokens_->written[token]) continue;
    const auto* block = cache_.row<std::byte>(tokens_->blocks[token]);
    for (std::size_t i = 0; i < (any_.*part).size(); ++i) {
      to[i] = block[(tokens_->entries[token].*part)[i]];
    }
  }
  return tensor;
}

// Maps an element of `part` to its place in the cache. `size`: bytes of an element, which are
// contiguous in the cache.
std::shared_ptr<const Origin> CacheContents::origin(
    std::size_t size, std::vector<std::int64_t> CacheEntry::* part) const {
  const std::int64_t block_bytes = cache_.rows() > 1 ? cache_.row_offset(1) : 0;
  const auto bit = [=, tokens = tokens_](std::int64_t row, std::int64_t column) -> std::int64_t {
    const auto token = static_cast<std::size_t>(row);
    if (!tokens->written[token]) return 0;
    const std::vector<std::int64_t>& bytes = tokens->entries[token].*part;
    return 8 *
           (tokens->blocks[token] * block_bytes + bytes[static_cast<std::size_t>(column) * size]);
  };
  return std::make_shared<const Origin>(Origin{cache_.spec().name, bit});
}

Expectation CacheContents::expect_rest() const {
  HostTensor expected = before_;
  for (std::size_t token = 0; token < tokens_->entries.size(); ++token) {
    if (!tokens_->written[token]) continue;
    auto* to = expected.row<std::byte>(tokens_->blocks[token]);
    const auto* from = cache_.row<std::byte>(tokens_->blocks[token]);
    for (const auto part : {&CacheEntry::codes, &CacheEntry::scales, &CacheEntry::copied}) {
      for (const std::int64_t byte : tokens_->entries[token].*part) to[byte] = from[byte];
    }
  }
  return expect_bits(cache_, expected, {}, "a byte that no token owns changed");
}

std::vector<double> numbers_of(const HostTensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < tensor.columns(); ++column) {
      numbers.push_back(tensor.value(row, column));
    }
  }
  return numbers;
}

}  // namespace plumb::cases
