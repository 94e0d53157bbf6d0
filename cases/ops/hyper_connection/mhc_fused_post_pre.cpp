// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_fused_post_pre. The streams that the device stored are judged first, and all else on
// the stored bytes. With at most `unrounded_rows` tokens, the sums use the streams before they are
// rounded, so that their expectation is computed from the inputs.
//
// Exact fill: every stream is +-2^k with one k per token, so that squares add up exactly.
#include "reference/hyper_connection/mhc_fused_post_pre.h"

#include <algorithm>

#include "cases/drivers/composition.h"
#include "cases/ops/hyper_connection/mhc_mixing.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace mhc_fused_post_pre_cases {

constexpr std::int64_t kRowsPerGroup = 64;

enum FusedPostPreSalt : std::uint64_t { kX = 201, kGates, kTurns };

using P = plumb_mhc_fused_post_pre_params;

// 0: DeepSeek's model.py, SGLang, the torch fallback. 16: vLLM 0.22.1. 32: vLLM 0.33 if hidden is a
// multiple of 128 (otherwise 0). AITER: 127 on gfx942, 1023 on other GPUs.
const ContractChoice kUnroundedRows{"unrounded_rows",
                                    {"0", "16", "32", "127", "1023"},
                                    "most tokens whose sums are of unrounded streams"};
// bf16_split: AITER with packed bf16 weights. TF32 weights are declared as numerics.product.
const ContractChoice kGemmOperand{
    "gemm_operand",
    {"fp32", "bf16_split"},
    "products with fn: of the streams of the square sum, or of stored streams and fn as two bf16"};

WordChoices numbers_of(const ContractChoice& choice) {
  WordChoices words{std::string(choice.name), {}};
  for (const std::string_view value : choice.values) {
    words.values.emplace_back(value, std::stoll(std::string(value)));
  }
  return words;
}

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  t.input("x", &P::x, {tokens, hidden}, "the first sublayer's output");
  add_residual(t, tokens, hidden);
  t.input("post_before", &P::post_before, {tokens, kStreams}, "gates of x");
  t.input("comb_before", &P::comb_before, {tokens, kStreams, kStreams}, "mixes of the streams");
  t.output("residual_out", &P::residual_out, {tokens, kStreams, hidden},
           "the streams between the sublayers");
  t.strides({{"residual_out_token_stride", &P::residual_out_token_stride},
             {"residual_out_slot_stride", &P::residual_out_slot_stride}});
  add_mixing(t, tokens, hidden, hidden * kStreams);
  t.word("unrounded_rows", &P::unrounded_rows, numbers_of(kUnroundedRows));
  t.choice("gemm_operand", &P::gemm_operand, kGemmOperand);
  return tokens;
}

struct FusedShape {
  P p;
  MhcMixing mixing;
  bool unrounded_sums, bf16_split;
  FusedShape(const Row& row, const P& of_row)
      : p(of_row),
        mixing(row, p, kStreams * p.hidden),
        unrounded_sums(row.launched("tokens") <= p.unrounded_rows),
        bf16_split(p.gemm_operand == PLUMB_GEMM_OPERAND_BF16_SPLIT) {}

  bool sums_as_mhc_pre() const { return !unrounded_sums && !bf16_split; }

  reference::Streams stored(const HostTensor& streams) const {
    return {streams.data<std::uint16_t>(), p.tokens, p.hidden, p.residual_out_token_stride,
            p.residual_out_slot_stride};
  }
};

// The plain ops that the fused op replaced: mhc_post, then mhc_pre on the streams that mhc_post
// stored.
class PostPreSequence final : public Composition {
 public:
  // `written`: outputs and scratch of the fused op. The sequence has a tensor plain_... for each.
  PostPreSequence(const FusedShape& shape, std::vector<TensorSpec> written)
      : shape_(shape), written_(std::move(written)) {}

  std::vector<std::string_view> ops() const override { return {"mhc_post", "mhc_pre"}; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    for (TensorSpec spec : written_) {
      spec.name = "plain_" + spec.name;
      tensors.add(std::move(spec));
    }
    return tensors;
  }

  plumb_status launch(const std::vector<device::OpEntry>& entries, const DeviceTensors& tensors,
                      device::Stream stream) const override {
    plumb_mhc_post_params post{};
    post.x = tensors.get<std::uint16_t>("x");
    post.residual = tensors.get<std::uint16_t>("residual");
    post.post = tensors.get<float>("post_before");
    post.comb = tensors.get<float>("comb_before");
    post.out = tensors.get<std::uint16_t>("plain_residual_out");
    post.tokens = shape_.p.tokens;
    post.hidden = shape_.p.hidden;
    post.residual_token_stride = shape_.p.residual_token_stride;
    post.residual_slot_stride = shape_.p.residual_slot_stride;
    post.out_token_stride = shape_.p.residual_out_token_stride;
    post.out_slot_stride = shape_.p.residual_out_slot_stride;
    post.stream = stream;
    const plumb_status status = entries[0].launch(&post);
    return status == PLUMB_OK ? launch_pre(entries[1], post, tensors) : status;
  }

  bool rounds_alike(std::string_view output) const override {
    return output == "residual_out" || shape_.sums_as_mhc_pre();
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const std::vector<device::OpEntry>& entries) const override {
    if (shape_.sums_as_mhc_pre()) return {};
    const plumb_numerics& declared = entries[1].numerics;
    const reference::Numerics numerics = to_reference(declared);
    const auto inputs =
        shape_.mixing.inputs(tensors, shape_.stored(tensors.at("plain_residual_out")));
    return shape_.mixing.expect(step, tensors, inputs,
                                reference::mhc_pre_partials(inputs, numerics), numerics, declared,
                                "plain_");
  }

 private:
  plumb_status launch_pre(const device::OpEntry& entry, const plumb_mhc_post_params& post,
                          const DeviceTensors& tensors) const {
    plumb_mhc_pre_params pre = shape_.mixing.scalars();
    pre.residual = post.out;
    pre.residual_token_stride = post.out_token_stride;
    pre.residual_slot_stride = post.out_slot_stride;
    pre.post_row_stride = shape_.p.post_row_stride;
    pre.comb_token_stride = shape_.p.comb_token_stride;
    pre.layer_input_row_stride = shape_.p.layer_input_row_stride;
    pre.fn = tensors.get<float>("fn");
    pre.scale = tensors.get<float>("scale");
    pre.base = tensors.get<float>("base");
    pre.norm_weight = tensors.get<std::uint16_t>("norm_weight");
    pre.post = tensors.get<float>("plain_post");
    pre.comb = tensors.get<float>("plain_comb");
    pre.layer_input = tensors.get<std::uint16_t>("plain_layer_input");
    pre.partial_mixes = tensors.get<float>("plain_partial_mixes");
    pre.partial_square_sums = tensors.get<float>("plain_partial_square_sums");
    pre.stream = post.stream;
    return entry.launch(&pre);
  }

  FusedShape shape_;
  std::vector<TensorSpec> written_;
};

class MhcFusedProblem final : public TableProblem<P> {
 public:
  MhcFusedProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), shape_(row, p_) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& x = tensors.at("x");
    HostTensor& residual = tensors.at("residual");
    HostTensor& post = tensors.at("post_before");
    HostTensor& comb = tensors.at("comb_before");
    fill_streams(step, shape_.mixing.streams_fill(), residual);
    shape_.mixing.fill(step, tensors);
    if (step.fill != Fill::exact) fill_real(x, 0, step.live, mix(step.seed, kX), {});
    for (std::int64_t token = 0; token < step.live; ++token) {
      float* of_post = post.row<float>(token);
      float* of_comb = comb.row<float>(token * kStreams);
      if (step.fill == Fill::exact) {
        flip_signs(step, token, residual, x);
        choose_streams(step, token, of_post, of_comb);
      } else {
        fill_coefficients(step, token, of_post, of_comb);
      }
    }
    fill_dead(x, step.live, x.rows(), step.dead_rows);
    fill_dead(post, step.live, post.rows(), step.dead_rows);
    fill_dead(comb, step.live * kStreams, comb.rows(), step.dead_rows);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    const HostTensor& stored = tensors.at("residual_out");
    reference::MhcFusedPostPre inputs;
    inputs.post.x = tensors.at("x").data<std::uint16_t>();
    inputs.post.residual = residual_of(p_, tensors.at("residual"));
    inputs.post.post = tensors.at("post_before").data<float>();
    inputs.post.comb = tensors.at("comb_before").data<float>();
    inputs.pre = shape_.mixing.inputs(tensors, shape_.stored(stored));
    inputs.unrounded_sums = shape_.unrounded_sums;
    inputs.pre.bf16_split = shape_.bf16_split;
    reference::MhcFusedPostPreOutputs expected = reference::mhc_fused_post_pre(inputs, numerics);
    adapt_linear_sum(step, expected.residual);
    Expectations expectations = {expect_floats(stored, expected.residual,
                                               promised_rows(step, stored.spec()),
                                               groups_of(stored.rows(), kRowsPerGroup, "rows"))};
    append(shape_.mixing.expect(step, tensors, inputs.pre, std::move(expected.partials), numerics,
                                declared),
           expectations);
    return expectations;
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return shape_.mixing.promised(step, spec.name);
  }

  std::unique_ptr<Composition> composition() const override {
    std::vector<TensorSpec> written;
    const TensorSet tensors = make_tensors();
    for (const HostTensor& tensor : tensors.all()) {
      if (tensor.spec().role != Role::input) written.push_back(tensor.spec());
    }
    return std::make_unique<PostPreSequence>(shape_, std::move(written));
  }

  double cost() const override {
    constexpr double kPerElement = 8;
    const double elements = static_cast<double>(capacity() * kStreams * p_.hidden);
    return shape_.mixing.cost() + kPerElement * elements;
  }
  double reference_cost() const override {
    return (shape_.unrounded_sums ? 1.5 : 1) * shape_.mixing.reference_cost();
  }
  double checked_factor() const override { return 12; }

 private:
  // Exact fill: x is the first stream with some signs flipped, so that x is +-2^k too.
  static void flip_signs(const Step& step, std::int64_t token, const HostTensor& residual,
                         HostTensor& x) {
    constexpr std::uint16_t kSign = 0x8000;
    const std::uint64_t seed = mix(mix(step.seed, kX), static_cast<std::uint64_t>(token));
    for (std::int64_t h = 0; h < x.columns(); ++h) {
      const bool flip = random_bits(seed, static_cast<std::uint64_t>(h)) & 1;
      x.row<std::uint16_t>(token)[h] = static_cast<std::uint16_t>(
          residual.row<std::uint16_t>(token * kStreams)[h] ^ (flip ? kSign : 0));
    }
  }

  // Exact fill: post and comb are 0 or 1, so that new stream n is x or one of the old streams.
  static void choose_streams(const Step& step, std::int64_t token, float* post, float* comb) {
    const std::uint64_t gates = random_bits(mix(step.seed, kGates), token);
    const std::int64_t turn = integer(mix(step.seed, kTurns), token, 0, kStreams - 1);
    std::fill_n(comb, kStreams * kStreams, 0.0F);
    for (std::int64_t n = 0; n < kStreams; ++n) {
      const bool takes_x = (gates >> n & 1) != 0;
      post[n] = takes_x ? 1 : 0;
      if (!takes_x) comb[(n + turn) % kStreams * kStreams + n] = 1;
    }
  }

  FusedShape shape_;
};

}  // namespace mhc_fused_post_pre_cases

OpDefinition define_mhc_fused_post_pre() {
  using namespace mhc_fused_post_pre_cases;
  return {{"mhc_fused_post_pre",
           "mhc_post of one sublayer and mhc_pre of the next, fused",
           mixing_parameters(),
           {kNormsWord, kLogitsWord},
           {kUnroundedRows, kGemmOperand}},
          make_problem_of<MhcFusedProblem>,
          [](const Row&) { return true; },
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
