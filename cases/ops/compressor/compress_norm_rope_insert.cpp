// SPDX-License-Identifier: Apache-2.0
//
// Cases of compress_norm_rope_insert. Tokens of a request follow one another. The state cache has
// the partial states of these tokens and of the earlier positions of their windows. Everything else
// in it is NaN.
#include "reference/compressor/compress_norm_rope_insert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/compressed_layout.h"
#include "cases/ops/compressor/compressor_inputs.h"
#include "cases/ops/compressor/state_members.h"
#include "cases/ops/metadata/metadata_members.h"
#include "cases/ops/quantization/stored_codes.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"
#include "reference/cache/kv_cache.h"

namespace plumb::cases {

namespace compress_norm_rope_insert_cases {

using reference::CacheEntry;
using reference::Estimate;
using reference::GroupQuant;
using reference::kMlaNope;

using P = plumb_compress_norm_rope_insert_params;

// amax: vLLM's Triton and HIP kernels, SGLang. scale: vLLM's CUDA kernel.
const ContractChoice kFloor{"floor",
                            {"amax", "scale"},
                            "main layout: what is at least 1e-4, the amax of a group or its scale"};
const ContractChoice kPad{"pad", {"zero", "untouched"}, "main layout: byte behind the scales"};

// norm: DeepSeek's own code. every: transformers' deepseek_v4 in bf16.
const ContractChoice kStateRounding{
    "rounding",
    {"store", "norm", "every"},
    "results rounded to bf16 before the store. norm: the mean over the window and the normalised "
    "state; every: also scores with ape, weights, and products with kv"};

// none: vLLM. q_and_k: SGLang, which also keeps the scales of its fp8 keys as fp32 numbers.
const ContractChoice kHadamard{
    "hadamard", {"none", "q_and_k"}, "indexer layouts: transform of the rotated state"};
const ContractChoice kScaleForm{
    "scale_form", {"pow2", "fp32"}, "indexer layout: pow2: scales are rounded up to powers of two"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  const Formula ratio = t.scalar("ratio", &P::ratio), overlap = t.scalar("overlap", &P::overlap);
  const Formula form = t.word("form", &P::form, state_forms());
  t.word("layout", &P::layout, compressed_layouts());
  t.choice("rounding", &P::rounding, kStateRounding);
  t.choice("hadamard", &P::hadamard, kHadamard);
  t.word("scale_form", &P::scale_form,
         {"scale_form", {{"pow2", PLUMB_SCALE_POWER_OF_TWO}, {"fp32", PLUMB_SCALE_AS_IT_IS}}});
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
  t.input("cache_scale", &P::cache_scale, {1}, "a code times this is a channel")
      .when(word_is("layout", "rows_fp8"));
  t.input("kv_slot_mapping", &P::kv_slot_mapping, {tokens},
          "block * page + offset; negative: skipped")
      .named("slot_mapping");
  auto cache = t.part("cache", &P::cache);
  using C = plumb_paged_cache;
  const Formula page = cache.scalar("page", &C::page);
  const Formula bytes = cache.scalar("block_stride_bytes", &C::block_stride_bytes,
                                     compressed_page_bytes(page, head_dim) + parameter("page_gap"));
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

class CompressProblem final : public TableProblem<P> {
 public:
  CompressProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), layout_(p_) {
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
    if (p_.layout == PLUMB_COMPRESSED_ROWS_FP8) fill_cache_scale(step, tensors);
    skip_some(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const std::vector<std::int64_t> closing = closing_tokens(tensors);
    reference::CompressedStates input = reference_states(shape_, tensors, closing);
    input.eps = double{p_.eps};
    input.rounding = rounding();
    input.hadamard = transforms();
    Estimate states = compressed_states(input, numerics);
    states.structured = step.fill != Fill::real;
    const CacheContents contents(
        pool_, tensors, [this](std::int64_t offset) { return layout_.entry(offset); },
        mask_of(closing));
    const RowMask judged = judged_tokens(contents.written(), states, closing);
    if (p_.layout == PLUMB_COMPRESSED_ROWS) {
      const HostTensor stored = contents.stored("cache.rows", Dtype::bf16, &CacheEntry::copied);
      return {expect_floats(stored, placed(compressed_columns(states, 0), closing), judged,
                            token_groups()),
              contents.expect_rest()};
    }
    return expect_quantised(contents, tensors, states, closing, judged, numerics);
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
    const std::int64_t alignment = CompressedLayout(p_).alignment();
    if (p_.cache.block_stride_bytes % alignment != 0) {
      throw BadRow(fmt::format("{}: blocks of the cache are {} bytes apart, no multiple of {}",
                               row.where, p_.cache.block_stride_bytes, alignment));
    }
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
      if (bits % 5 == 0) own[token] = negative_index(step, bits);
      if (bits % 5 == 1) slots[token] = negative_index(step, bits);
    }
  }

  bool transforms() const {
    return p_.hadamard == PLUMB_HADAMARD_Q_AND_K && layout_.is_of_indexer();
  }
  reference::CompressedRounding rounding() const {
    using Rounding = reference::CompressedRounding;
    if (p_.rounding == PLUMB_COMPRESSED_ROUND_STORE) return Rounding::store;
    return p_.rounding == PLUMB_COMPRESSED_ROUND_NORM ? Rounding::norm : Rounding::every;
  }

  // About the size of a state's largest channels divided by 448, so that some saturate. A power of
  // two keeps codes of the exact fill exact.
  void fill_cache_scale(const Step& step, TensorSet& tensors) const {
    const double size = std::ldexp(1.0, static_cast<int>(shape_.weight_exponent) - 7);
    const double factor = step.fill == Fill::exact ? 1 : uniform(mix(step.seed, 73), 0) + 0.25;
    tensors.at("cache_scale").data<float>()[0] = static_cast<float>(size * factor);
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
    const HostTensor rope = bytes_as(copied, "cache.rope", Dtype::bf16, 0, reference::kMlaRope);
    Expectations all{expect_floats(rope, placed(compressed_columns(states, kMlaNope), closing),
                                   judged, token_groups())};
    if (!layout_.pads) return all;
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(p_.tokens), 0);
    all.push_back(expect_exact(bytes_as(copied, "cache.pad", Dtype::u8, 2 * reference::kMlaRope, 1),
                               zeros, judged));
    return all;
  }

  // The scale of each group of the closing tokens' states.
  std::vector<double> scales_of_groups(const HostTensor& scales, const TensorSet& tensors,
                                       const std::vector<std::int64_t>& closing) const {
    if (!layout_.has_scales()) {
      return std::vector<double>(closing.size(), tensors.at("cache_scale").value(0, 0));
    }
    std::vector<double> numbers;
    for (const std::int64_t token : closing) {
      for (std::int64_t i = 0; i < scales.columns(); ++i) {
        const double stored = scales.value(token, i);
        const auto byte = static_cast<std::uint16_t>(layout_.fp32_scales ? 0 : stored);
        numbers.push_back(layout_.fp32_scales ? stored
                                              : decode(reference::CodeFormat::ue8m0, byte));
      }
    }
    return numbers;
  }

  // All four bytes of a scale are equal.
  Expectation expect_equal_bytes(const CacheContents& contents, const HostTensor& first,
                                 const RowMask& judged) const {
    const HostTensor all = contents.stored("cache.scales", Dtype::u8, &CacheEntry::scales);
    std::vector<std::int64_t> bytes;
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      bytes.insert(bytes.end(), 3, static_cast<std::int64_t>(first.value(token, 0)));
    }
    return expect_exact(bytes_as(all, "cache.scales", Dtype::u8, 1, 3), bytes, judged);
  }

  Expectations expect_quantised(const CacheContents& contents, const TensorSet& tensors,
                                const Estimate& states, const std::vector<std::int64_t>& closing,
                                const RowMask& judged, const reference::Numerics& numerics) const {
    const GroupQuant how = layout_.quant();
    const std::int64_t columns = layout_.quantised_columns();
    const auto expect = [&](const HostTensor& stored, reference::CodeEstimate codes) {
      codes.before = placed(codes.before, closing);
      codes.before.structured = states.structured;
      return expect_codes(stored, std::move(codes), judged);
    };
    const HostTensor scales = layout_.has_scales() ? layout_.scales(contents) : HostTensor({});
    Expectations all;
    if (layout_.fp32_scales) {
      Estimate numbers = placed(compressed_fp32_scales(states, columns, how, numerics), closing);
      numbers.structured = states.structured;
      all.push_back(expect_floats(scales, std::move(numbers), judged, token_groups()));
    } else if (layout_.has_scales()) {
      all.push_back(expect(scales, compressed_scales(states, columns, how, numerics)));
    }
    if (p_.layout == PLUMB_COMPRESSED_INDEXER_BYTES) {
      all.push_back(expect_equal_bytes(contents, scales, judged));
    }
    const std::vector<double> numbers = scales_of_groups(scales, tensors, closing);
    all.push_back(
        expect(layout_.codes(contents), compressed_codes(states, columns, numbers, how, numerics)));
    if (layout_.is_main()) append(expect_copied(contents, states, closing, judged), all);
    all.push_back(contents.expect_rest());
    return all;
  }

  CompressedLayout layout_;
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
  op.word_parameters = {kStateForm, kCompressedLayout};
  op.choices = {kFloor, kPad, kStateRounding, kHadamard, kScaleForm};
  op.make_problem = make_problem_of<CompressProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
