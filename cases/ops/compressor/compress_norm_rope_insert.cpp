// SPDX-License-Identifier: Apache-2.0
//
// Cases of compress_norm_rope_insert. Tokens of a request follow one another. The state cache has
// the partial states of these tokens and of the earlier positions of their windows. Everything else
// in it is NaN.
#include "reference/compressor/compress_norm_rope_insert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/compressor_inputs.h"
#include "cases/ops/compressor/state_members.h"
#include "cases/ops/metadata/metadata_members.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"
#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/cache/kv_cache.h"
#include "reference/cache/quantize_and_insert_k_cache.h"

namespace plumb::cases {

namespace compress_norm_rope_insert_cases {

using reference::CacheEntry;
using reference::Estimate;
using reference::GroupQuant;
using reference::kMlaNope;

using P = plumb_compress_norm_rope_insert_params;

const WordParameter kLayout{"layout",
                            {"indexer", "main", "rows"},
                            "of the cache: fp8 keys of the indexer, fp8_ds_mla, or bf16 rows"};
// amax: vLLM's Triton and HIP kernels, SGLang. scale: vLLM's CUDA kernel.
const ContractChoice kFloor{"floor",
                            {"amax", "scale"},
                            "main layout: what is at least 1e-4, the amax of a group or its scale"};
const ContractChoice kPad{"pad", {"zero", "untouched"}, "main layout: byte behind the scales"};

Formula page_bytes(const Formula& page, const Formula& head_dim) {
  const Formula main = word_is("layout", "main"), rows = word_is("layout", "rows");
  const Formula of_main = div_up(page * (reference::kMlaTokenBytes + reference::kMlaScaleBytes),
                                 reference::kMlaTokenBytes) *
                          reference::kMlaTokenBytes;
  return main * of_main + rows * page * head_dim * 2 + !(main + rows) * page * (head_dim + 4);
}

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  const Formula ratio = t.scalar("ratio", &P::ratio), overlap = t.scalar("overlap", &P::overlap);
  const Formula form = t.word("form", &P::form, state_forms());
  t.word("layout", &P::layout,
         {"layout",
          {{"indexer", PLUMB_COMPRESSED_INDEXER},
           {"main", PLUMB_COMPRESSED_MAIN},
           {"rows", PLUMB_COMPRESSED_ROWS}}});
  t.choice("floor", &P::floor, kFloor);
  t.choice("pad", &P::pad, kPad);
  t.real("eps", &P::eps, 1e-6F, "added to the mean of the squares");
  const Formula width = head_dim * (overlap + 1);
  auto states = t.part("states", &P::states);
  const Formula queries = parameter("queries"), requests = div_up(tokens, queries);
  const Formula of_request = div_up(ratio * (overlap + 1) + queries, parameter("state_rows")) + 1;
  const Formula blocks = or_else(parameter("state_blocks"), requests * of_request + 2);
  const StateSizes sizes = add_state_scalars(states, width, state_element_bytes(), blocks,
                                             {"state_blocks", "far_states"});
  states.input("data", &plumb_state_cache::data, {blocks, sizes.block_bytes}, "partial states")
      .named("states");
  t.given(parameter("table_gap"), 0);
  add_block_table(t, requests_of_tokens(tokens, requests),
                  div_up(parameter("context"), sizes.rows));
  t.input("token_to_req", &P::token_to_req, {tokens}, "request of each token");
  t.input("positions", &P::positions, {tokens}, "of each token");
  t.input("slot_mapping", &P::slot_mapping, {tokens}, "of the state cache; negative: skipped")
      .named("state_slot_mapping");
  t.input("ape", &P::ape, {ratio, width}, "added to scores").when(!!form);
  t.input("weight", &P::weight, {head_dim}, "factor of each channel");
  t.input("cos_sin", &P::cos_sin,
          {in_call(parameter("context"), limit(&EngineLimits::positions, "positions")), 64},
          "of each position 32 cosines, then 32 sines");
  t.input("kv_slot_mapping", &P::kv_slot_mapping, {tokens},
          "block * page + offset; negative: skipped")
      .named("slot_mapping");
  auto cache = t.part("cache", &P::cache);
  using C = plumb_paged_cache;
  const Formula page = cache.scalar("page", &C::page);
  const Formula bytes = cache.scalar("block_stride_bytes", &C::block_stride_bytes,
                                     page_bytes(page, head_dim) + parameter("page_gap"));
  cache.scalar("dialect", &C::dialect, std::int64_t{PLUMB_E4M3FN});
  const Formula pages = or_else(parameter("blocks"), div_up(tokens, page) + 2);
  const Formula numbered = computed("blocks", [=](const FormulaValues& values) {
    return BlockNumbering{pages.value(values), bytes.value(values), values.row->integer("far") != 0}
        .num_blocks();
  });
  cache.scalar("num_blocks", &C::num_blocks, in_call(numbered, parameter("blocks")));
  cache.in_place("data", &C::data, {pages, bytes}, "other states keep their bytes").named("cache");
  return tokens;
}

// Bytes [begin, begin + count) of each row, as elements of `dtype`.
HostTensor part_of(const HostTensor& bytes, std::string_view name, Dtype dtype, std::int64_t begin,
                   std::int64_t count) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  TensorSpec spec{.name = std::string(name), .dtype = dtype, .shape = {bytes.rows(), count / size}};
  const auto bit = [whole = bytes.spec().origin, begin, size](std::int64_t row,
                                                              std::int64_t column) {
    return whole->bit(row, begin + column * size);
  };
  spec.origin = std::make_shared<const Origin>(Origin{bytes.spec().origin->tensor, bit});
  HostTensor part(std::move(spec));
  for (std::int64_t row = 0; row < bytes.rows(); ++row) {
    std::memcpy(part.bytes().data() + row * count, bytes.row<std::uint8_t>(row) + begin,
                static_cast<std::size_t>(count));
  }
  return part;
}

class CompressProblem final : public TableProblem<P> {
 public:
  CompressProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    pool_.tokens = p_.tokens;
    pool_.page = p_.cache.page;
    pool_.block_bytes = p_.cache.block_stride_bytes;
    pool_.skip = PLUMB_SKIP_NEGATIVE;
    pool_.far = row.integer("far") != 0;
    pool_.given_blocks = row.integer("blocks");
    shape_.tokens = p_.tokens;
    shape_.queries = row.integer("queries");
    shape_.context = row.integer("context");
    shape_.head_dim = p_.head_dim;
    shape_.ratio = p_.ratio;
    shape_.overlap = p_.overlap != 0;
    shape_.rows = p_.states.rows;
    shape_.row_stride_bytes = p_.states.row_stride_bytes;
    shape_.form = p_.form;
    const std::int64_t given = row.integer("state_blocks");
    shape_.blocks = {given != 0 ? given : needed_state_blocks(shape_), p_.states.block_stride_bytes,
                     row.integer("far_states") != 0};
    shape_.weight_exponent = static_cast<int>(row.integer("weight_exponent"));
    shape_.kv_exponent = static_cast<int>(row.integer("kv_exponent"));
    check(row);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_partial_states(shape_, step, tensors);
    fill_cache_pool(pool_, step, tensors);
    skip_some(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const std::vector<std::int64_t> closing = closing_tokens(tensors);
    reference::CompressedStates input = reference_states(shape_, tensors, closing);
    input.eps = double{p_.eps};
    Estimate states = compressed_states(input, numerics);
    states.structured = step.fill != Fill::real;
    const CacheContents contents(
        pool_, tensors, [this](std::int64_t offset) { return entry(offset); }, mask_of(closing));
    const RowMask judged = judged_tokens(contents.written(), states, closing);
    if (p_.layout == PLUMB_COMPRESSED_ROWS) {
      const HostTensor stored = contents.stored("cache.rows", Dtype::bf16, &CacheEntry::copied);
      return {expect_floats(stored, placed(compressed_columns(states, 0), closing), judged,
                            token_groups()),
              contents.expect_rest()};
    }
    return expect_quantised(contents, states, closing, judged, numerics);
  }

  double cost() const override {
    const double window =
        p_.overlap ? 2.0 * static_cast<double>(p_.ratio) : static_cast<double>(p_.ratio);
    return static_cast<double>(p_.tokens) * static_cast<double>(p_.head_dim) * (40 + 30 * window);
  }
  double checked_factor() const override { return 12; }
  double reference_cost() const override { return 10 * cost(); }

 protected:
  void place(TensorSpec& spec) const override {
    place_cache_pool(pool_, spec);
    if (spec.name == "states") shape_.blocks.place(spec);
  }

 private:
  void check(const Row& row) const {
    if (shape_.queries > shape_.context) throw BadRow(row.where + ": more queries than context");
    if (p_.layout == PLUMB_COMPRESSED_MAIN && p_.head_dim != reference::kMlaDim) {
      throw BadRow(row.where + ": states of the main layout have 512 channels");
    }
    if (p_.head_dim % 64 != 0) throw BadRow(row.where + ": head_dim is a multiple of 64");
  }

  // Tokens that complete a group and have a slot in both caches (partial and compressed states).
  // The op writes the compressed states of these tokens.
  std::vector<std::int64_t> closing_tokens(const TensorSet& tensors) const {
    const auto* positions = tensors.at("positions").data<std::int64_t>();
    const auto* own = tensors.at("state_slot_mapping").data<std::int64_t>();
    const auto* slots = tensors.at("slot_mapping").data<std::int64_t>();
    std::vector<std::int64_t> closing;
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      const bool ends = positions[token] % p_.ratio == p_.ratio - 1;
      if (ends && own[token] >= 0 && slots[token] >= 0) closing.push_back(token);
    }
    return closing;
  }

  // Removes the slot in one of the two caches from some tokens. The op must write no state for
  // them.
  void skip_some(const Step& step, TensorSet& tensors) const {
    if (step.fill == Fill::exact) return;
    auto* own = tensors.at("state_slot_mapping").data<std::int64_t>();
    auto* slots = tensors.at("slot_mapping").data<std::int64_t>();
    for (std::int64_t token = 0; token < step.live; ++token) {
      const std::uint64_t bits = random_bits(mix(step.seed, 71), static_cast<std::uint64_t>(token));
      if (bits % 5 == 0) own[token] = -1;
      if (bits % 5 == 1) slots[token] = -1;
    }
  }

  bool pads() const { return p_.pad == PLUMB_PAD_ZERO; }

  CacheEntry entry(std::int64_t offset) const {
    if (p_.layout == PLUMB_COMPRESSED_MAIN) {
      return reference::k_cache_entry(pool_.page, offset, pads());
    }
    if (p_.layout == PLUMB_COMPRESSED_INDEXER) {
      return reference::indexer_k_entry(
          {.page = pool_.page, .head_dim = p_.head_dim, .quant_block = p_.head_dim}, offset);
    }
    CacheEntry row;
    reference::append_range(row.copied, offset * p_.head_dim * 2, p_.head_dim * 2);
    return row;
  }

  GroupQuant how() const {
    const bool main = p_.layout == PLUMB_COMPRESSED_MAIN;
    GroupQuant quant = reference::fp8_quant(reference::Dialect::e4m3fn,
                                            main ? reference::kMlaScaleGroup : p_.head_dim);
    const bool of_scale = main && p_.floor == PLUMB_COMPRESSED_FLOOR_SCALE;
    (of_scale ? quant.scale_floor : quant.amax_floor) = double{1e-4F};
    return quant;
  }

  RowMask mask_of(const std::vector<std::int64_t>& tokens) const {
    RowMask mask(static_cast<std::size_t>(p_.tokens), false);
    for (const std::int64_t token : tokens) mask[static_cast<std::size_t>(token)] = true;
    return mask;
  }
  // A state that is not finite is not judged: engines clamp it in different ways.
  RowMask judged_tokens(RowMask written, const Estimate& states,
                        const std::vector<std::int64_t>& closing) const {
    for (std::size_t i = 0; i < closing.size(); ++i) {
      const auto first = states.value.begin() + static_cast<std::int64_t>(i) * states.columns;
      const bool finite = std::all_of(first, first + states.columns,
                                      [](double value) { return std::isfinite(value); });
      if (!finite) written[static_cast<std::size_t>(closing[i])] = false;
    }
    return written;
  }
  // Moves state i to the row of the i-th closing token (a token that completes a group).
  Estimate placed(const Estimate& states, const std::vector<std::int64_t>& closing) const {
    return placed_states(states, closing, p_.tokens);
  }
  std::vector<RowGroup> token_groups() const { return groups_of(p_.tokens, 64, "64 tokens"); }

  // Expects the rotated channels of the main layout, and the byte behind its scales.
  Expectations expect_copied(const CacheContents& contents, const Estimate& states,
                             const std::vector<std::int64_t>& closing,
                             const RowMask& judged) const {
    const HostTensor copied = contents.stored("cache.copied", Dtype::u8, &CacheEntry::copied);
    const std::int64_t bytes = 2 * reference::kMlaRope;
    const HostTensor rope = part_of(copied, "cache.rope", Dtype::bf16, 0, bytes);
    Expectations all{expect_floats(rope, placed(compressed_columns(states, kMlaNope), closing),
                                   judged, token_groups())};
    if (!pads()) return all;
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(p_.tokens), 0);
    all.push_back(expect_exact(part_of(copied, "cache.pad", Dtype::u8, bytes, 1), zeros, judged));
    return all;
  }

  // Scales as exponent bytes: as they are stored, or those of the powers of two in fp32.
  HostTensor scale_bytes(const CacheContents& contents) const {
    const bool main = p_.layout == PLUMB_COMPRESSED_MAIN;
    HostTensor scales =
        contents.stored("cache.scales", main ? Dtype::u8 : Dtype::f32, &CacheEntry::scales);
    if (main) return scales;
    return bytes_of_scales("cache.scales", scales.rows(), scales.columns(), numbers_of(scales),
                           scales.spec().origin);
  }

  Expectations expect_quantised(const CacheContents& contents, const Estimate& states,
                                const std::vector<std::int64_t>& closing, const RowMask& judged,
                                const reference::Numerics& numerics) const {
    const bool main = p_.layout == PLUMB_COMPRESSED_MAIN;
    const std::int64_t columns = main ? kMlaNope : p_.head_dim;
    const HostTensor scales = scale_bytes(contents);
    std::vector<double> numbers;
    for (const std::int64_t token : closing) {
      for (std::int64_t i = 0; i < scales.columns(); ++i) {
        const auto byte = static_cast<std::uint16_t>(scales.value(token, i));
        numbers.push_back(decode(reference::CodeFormat::ue8m0, byte));
      }
    }
    reference::CodeEstimate bytes = compressed_scales(states, columns, how(), numerics);
    reference::CodeEstimate codes = compressed_codes(states, columns, numbers, how(), numerics);
    for (reference::CodeEstimate* of : {&bytes, &codes}) {
      of->before = placed(of->before, closing);
      of->before.structured = states.structured;
    }
    Expectations all{expect_codes(scales, std::move(bytes), judged),
                     expect_codes(contents.stored("cache.codes", Dtype::u8, &CacheEntry::codes),
                                  std::move(codes), judged)};
    if (main) append(expect_copied(contents, states, closing, judged), all);
    all.push_back(contents.expect_rest());
    return all;
  }

  CachePoolShape pool_;
  PartialStateShape shape_;
};

}  // namespace compress_norm_rope_insert_cases

OpDefinition define_compress_norm_rope_insert() {
  using namespace compress_norm_rope_insert_cases;
  OpDefinition op;
  op.name = "compress_norm_rope_insert";
  op.summary = "compressed states of closed groups: softmax, norm, RoPE, quantisation, insert";
  op.parameters = {
      {"tokens", 4, 0, 1 << 20, "of the step"},
      {"queries", 1, 1, 1 << 20, "tokens of each request"},
      {"context", 1000, 1, 1 << 24, "positions of the longest sequence, rows of cos_sin"},
      {"head_dim", 128, 128, 512, "channels of a state, a multiple of 64"},
      {"ratio", 4, 1, 65536, "positions of a group"},
      {"overlap", 1, 0, 1, "1: a window is two groups"},
      {"state_rows", 4, 1, 4096, "positions of a block of the state cache"},
      {"state_row_gap", 0, 0, 65536, "elements between two partial states, guarded"},
      {"state_block_gap", 0, 0, 1 << 20, "elements between two blocks of them, guarded"},
      {"state_blocks", 0, 0, 1 << 30, "of the state cache; 0: what the windows need, and two"},
      {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
      {"page", 64, 1, 4096, "states of a block of the cache"},
      {"page_gap", 0, 0, 1 << 20, "bytes between blocks of the cache, guarded"},
      {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the tokens need, and two"},
      {"weight_exponent", 0, -40, 40, "weights of the norm are about 2 to this power", true},
      {"kv_exponent", 0, -40, 40, "kv are about 2 to this power", true},
      {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"},
      {"far_states", 0, 0, 1, "1: the same of the state cache"}};
  op.word_parameters = {kStateForm, kLayout};
  op.choices = {kFloor, kPad};
  op.make_problem = make_problem_of<CompressProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
