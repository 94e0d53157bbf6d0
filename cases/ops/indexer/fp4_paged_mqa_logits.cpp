// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp4_paged_mqa_logits: next_n rows per request over a paged cache of MXFP4 keys
// (paged_contexts.h). Poison of the cache: scale 255, which is NaN, and the largest codes.
//
//   exact        codes of small integers, scales of at most 4: every order gives the same bits
//   real         random codes; scales of the groups of a vector differ by a factor of up to 2^8
//   adversarial  scales that differ by 2^30, of queries and keys about 2^120 apart; vectors of -0;
//   the largest codes; equal tokens
#include "reference/indexer/fp4_paged_mqa_logits.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <utility>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/indexer/key_cache.h"
#include "cases/ops/indexer/paged_contexts.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace fp4_paged_mqa_logits_cases {

using P = plumb_fp4_paged_mqa_logits_params;

constexpr std::int64_t kMxGroup = 32;
constexpr std::uint8_t kNanScale = 255, kScaleOfOne = 127;

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula next_n = t.scalar("next_n", &P::next_n), heads = t.scalar("heads", &P::heads);
  const Formula dim = t.scalar("dim", &P::dim), rows = requests * next_n;
  const Formula page = t.scalar("page", &P::page);
  t.given(parameter("gap"), 0);
  const Formula columns =
      t.scalar("max_context_len", &P::max_context_len, parameter("length") + parameter("gap"));
  const Formula stride =
      t.caller_scalar("logits_row_stride", &P::logits_row_stride, padded_columns(columns));
  const Formula table = t.caller_scalar("block_table_row_stride", &P::block_table_row_stride,
                                        div_up(parameter("length"), page) + kSpareBlocks);
  const Formula dims = t.scalar("context_lens_dims", &P::context_lens_dims);
  const Formula lens = (dims - 1) * (next_n - 1) + 1;
  const Formula lens_stride = t.scalar("context_lens_row_stride", &P::context_lens_row_stride,
                                       lens + parameter("context_lens_gap"));
  t.scalar("clean_logits", &P::clean_logits, parameter("clean"));
  const Formula groups = div_up(dim, kMxGroup), code_bytes = groups * (kMxGroup / 2);
  const Formula block_bytes = t.scalar("block_stride_bytes", &P::block_stride_bytes,
                                       page * (code_bytes + groups) + parameter("block_gap"));
  const KeyCacheBlocks blocks = key_cache_blocks(block_bytes);
  t.scalar("num_blocks", &P::num_blocks, blocks.in_call);
  t.input("q", &P::q, {requests, next_n, heads, code_bytes}, "E2M1 codes, the even dim low");
  t.input("q_scales", &P::q_scales, {rows, heads, groups}, "UE8M0, one of 32 dims");
  t.input("cache", &P::cache, {blocks.of_case, block_bytes}, "codes, then UE8M0 scales");
  t.input("weights", &P::weights, {rows, heads}, "of each head");
  t.input("context_lens", &P::context_lens, {requests, lens}, "of each request or each row")
      .strides({lens_stride, 1});
  t.input("block_table", &P::block_table, {requests, table}, "blocks of each request");
  t.output("logits", &P::logits, {rows, stride}, "scores; columns behind the context are padding");
  return requests;
}

// Adversarial scales of queries are around 2^60, those of keys around 2^-60, or the reverse.
constexpr int kFarScale = 60;
int far_scale(const Step& step) {
  if (step.fill != Fill::adversarial) return 0;
  return random_bits(step.seed, 41) % 2 == 0 ? kFarScale : -kFarScale;
}

// One vector of dim / 2 bytes of codes and dim / 32 scales. `scale`: exponent of their middle.
void write_vector(const Step& step, std::uint64_t seed, std::int64_t number, std::int64_t dim,
                  int scale, std::uint8_t* codes, std::uint8_t* scales) {
  // Codes of the numbers -2, -1, 0, 1 and 2; of -0; and of -6 and 6.
  constexpr std::uint8_t kIntegers[] = {12, 10, 0, 2, 4};
  constexpr std::uint8_t kMinusZero = 8, kLargest[] = {7, 15};
  const auto style = step.fill == Fill::adversarial ? number % 4 : 3;
  const auto code = [&](std::int64_t d) -> std::uint32_t {
    const std::uint64_t bits = random_bits(style == 2 ? 17 : seed, static_cast<std::uint64_t>(d));
    if (step.fill == Fill::exact) return kIntegers[bits % std::size(kIntegers)];
    if (style == 0) return kMinusZero;
    if (style == 1) return kLargest[bits % 2];
    return static_cast<std::uint32_t>(bits % 16);
  };
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    codes[i] = static_cast<std::uint8_t>(code(2 * i) | code(2 * i + 1) << 4);
  }
  const std::int64_t most = step.fill == Fill::exact ? 2 : step.fill == Fill::real ? 8 : 30;
  for (std::int64_t group = 0; group < dim / kMxGroup; ++group) {
    const std::int64_t exponent = integer(mix(seed, 1), static_cast<std::uint64_t>(group), 0, most);
    scales[group] = static_cast<std::uint8_t>(kScaleOfOne + scale - most / 2 + exponent);
  }
}

class Fp4PagedMqaLogitsProblem final : public TableProblem<P> {
 public:
  Fp4PagedMqaLogitsProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), contexts_(row, p_.block_stride_bytes) {
    if (p_.dim % kMxGroup != 0) {
      throw BadRow(fmt::format("{}: dim is a multiple of 32, not {}", row.where, p_.dim));
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto poison = [&](std::uint8_t* block) {
      std::fill(block, block + p_.block_stride_bytes, kNanScale);
    };
    const auto write = [&](std::int64_t request, std::int64_t position, std::int64_t token,
                           std::uint8_t* block) {
      const reference::Fp4Entry entry = reference::fp4_entry(p_.page, p_.dim, token);
      const std::uint64_t own = mix(mix(step.seed, 25), static_cast<std::uint64_t>(request));
      write_vector(step, mix(own, static_cast<std::uint64_t>(position)), position, p_.dim,
                   -far_scale(step), block + entry.codes, block + entry.scales);
    };
    contexts_.fill(step, tensors.at("context_lens"), tensors.at("block_table"), tensors.at("cache"),
                   {poison, write});
    fill_q(step, step.live * p_.next_n, tensors.at("q"), tensors.at("q_scales"));
    fill_head_weights(step, step.live * p_.next_n, tensors.at("weights"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    const std::vector<std::int32_t> table =
        host_block_table(contexts_.pool, tensors.at("block_table"));
    reference::Fp4PagedMqaLogits input = reference_input(tensors);
    input.block_table = table.data();
    contexts_.check(input);
    reference::Estimate expected = reference::fp4_paged_mqa_logits(input, numerics);
    expected.structured = step.fill != Fill::real;
    return {expect_floats(logits, std::move(expected), {},
                          groups_of(contexts_.rows(), p_.next_n, "request"),
                          promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    return contexts_.promised_columns(reference_input(tensors));
  }

  double cost() const override { return of_requests(logits_cost); }
  double reference_cost() const override { return of_requests(logits_reference_cost); }
  double checked_factor() const override { return kLogitsCheckedFactor; }
  ReferenceWork reference_work() const override {
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = of_requests(logits_multiply_adds)};
  }

 private:
  void place(TensorSpec& spec) const override {
    if (spec.name == "cache") contexts_.pool.place(spec);
  }

  double of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t,
                                       std::int64_t)) const {
    return contexts_.of_requests(of_rows, p_.heads, p_.dim);
  }

  // Queries of rows [0, live). Dead rows: NaN has no code, so a scale stands for it.
  void fill_q(const Step& step, std::int64_t live, HostTensor& q, HostTensor& scales) const {
    for (std::int64_t i = 0; i < live * p_.heads; ++i) {
      write_vector(step, mix(mix(step.seed, 20), static_cast<std::uint64_t>(i)),
                   i / p_.heads + i % 2, p_.dim, far_scale(step), q.row<std::uint8_t>(i),
                   scales.row<std::uint8_t>(i));
    }
    if (step.dead_rows == DeadRows::foreign) return;
    const bool is_zero = step.dead_rows == DeadRows::zero;
    for (std::int64_t i = live * p_.heads; i < scales.rows(); ++i) {
      std::fill_n(q.row<std::uint8_t>(i), q.columns(), is_zero ? 0 : kNanScale);
      const std::uint8_t scale = step.dead_rows == DeadRows::nan ? kNanScale : kNanScale - 1;
      std::fill_n(scales.row<std::uint8_t>(i), scales.columns(), is_zero ? 0 : scale);
    }
  }

  reference::Fp4PagedMqaLogits reference_input(const TensorSet& tensors) const {
    reference::Fp4PagedMqaLogits input;
    contexts_.set_rows(p_, tensors, input);
    input.q = tensors.at("q").data<std::uint8_t>();
    input.q_scales = tensors.at("q_scales").data<std::uint8_t>();
    input.page = p_.page;
    return input;
  }

  PagedContexts contexts_;
};

}  // namespace fp4_paged_mqa_logits_cases

OpDefinition define_fp4_paged_mqa_logits() {
  using namespace fp4_paged_mqa_logits_cases;
  OpDefinition op;
  op.name = "fp4_paged_mqa_logits";
  op.summary = "lightning indexer: MXFP4 scores of a request's tokens in a paged cache";
  op.parameters = paged_logits_parameters();
  op.parameters.push_back({"dim", 128, 32, 128, "dimensions of a head, a multiple of 32"});
  op.make_problem = make_problem_of<Fp4PagedMqaLogitsProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
