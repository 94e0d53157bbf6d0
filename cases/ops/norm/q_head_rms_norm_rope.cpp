// SPDX-License-Identifier: Apache-2.0
//
// Cases of q_head_rms_norm_rope: heads of very different norm, rotated by near and far positions.
#include "reference/norm/q_head_rms_norm_rope.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/norm/rope_inputs.h"

namespace plumb::cases {

namespace q_head_rms_norm_rope_cases {

using reference::kHeadDim;

using P = plumb_q_head_rms_norm_rope_params;

// copy: vLLM if the cache is quantised, and SGLang. in_place: vLLM if the cache is plain bf16.
const ContractChoice kPlacement{"placement",
                                {"copy", "in_place"},
                                "the heads are read from q, or from out, which is overwritten",
                                {{"*", "*", "the buffers differ: such a pair cannot run"}}};

// once: vLLM. twice: SGLang. factor: transformers, which rounds the factor to the format of q.
const ContractChoice kHeadRounding{
    "rounding",
    {"once", "twice", "factor"},
    "once at the store, also in front of RoPE, or also of 1 / sqrt(mean(q^2) + eps)"};

Formula members(TablePart<P>& t) {
  const Formula in_place = word_is("placement", "in_place");
  const Formula tokens = t.scalar("tokens", &P::tokens), heads = t.scalar("heads", &P::heads);
  const Formula stride =
      t.scalar("q_token_stride", &P::q_token_stride, heads * kHeadDim + parameter("token_gap"));
  const Formula out_head =
      t.caller_scalar("out_head_stride", &P::out_head_stride, parameter("out_gap") + kHeadDim);
  const Formula out_token = t.caller_scalar("out_token_stride", &P::out_token_stride,
                                            heads * out_head + parameter("out_gap"));
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kHeadRounding);
  t.given(in_place, !t.has("q", &P::q));
  t.input("q", &P::q, {tokens, heads, kHeadDim}, "query heads")
      .strides({stride, kHeadDim, 1})
      .when(!in_place);
  add_rope(t, tokens);
  t.output("out", &P::out, {tokens, heads, kHeadDim}, "q, normalised and rotated")
      .strides({out_token, out_head, 1})
      .when(!in_place);
  t.in_place("out", &P::out, {tokens, heads, kHeadDim},
             "query heads, normalised and rotated in place")
      .strides({out_token, out_head, 1})
      .when(in_place);
  return tokens;
}

class QHeadProblem final : public TableProblem<P> {
 public:
  QHeadProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        positions_(positions_of(row)),
        read_(row.word("placement") == "in_place" ? "out_before" : "q") {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at(read_), step.live * p_.heads, mix(step.seed, 1), step);
    fill_rope(step, positions_, tensors);
    paint_gaps(tensors.at(read_));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const auto q = packed<std::uint16_t>(tensors.at(read_));
    auto expected = reference::q_head_rms_norm_rope(
        {q.data(), tensors.at("cos_sin").data<float>(), rope_rows(tensors), p_.tokens, p_.heads,
         p_.heads * kHeadDim, static_cast<double>(p_.eps), rounding_of(p_.rounding)},
        numerics);
    const HostTensor& out = tensors.at("out");
    return {expect_floats(out, mark_structured(std::move(expected), step.fill),
                          promised_rows(step, out.spec()),
                          groups_of(p_.tokens * p_.heads, p_.heads, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens * p_.heads, step.live * p_.heads, step.dead_rows);
  }

  // One wave takes a head, and needs five (32 lanes) or six (64 lanes) shuffles.
  double cost() const override {
    return static_cast<double>(p_.tokens * p_.heads) * (6.0 * kHeadDim + 32 * 5.5 * kShuffleCost);
  }
  double checked_factor() const override {
    return 3;
  }  // most of the work is shuffles, which are no memory accesses
  double reference_cost() const override {
    return 40.0 * static_cast<double>(p_.tokens * p_.heads * kHeadDim);
  }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens * p_.heads, kHeadDim);
  }

 private:
  void place(TensorSpec& spec) const override { place_rope(spec); }

  Positions positions_;
  std::string_view read_;  // the tensor with the heads
};

}  // namespace q_head_rms_norm_rope_cases

OpDefinition define_q_head_rms_norm_rope() {
  using namespace q_head_rms_norm_rope_cases;
  return {{"q_head_rms_norm_rope",
           "the norm of each query head, then RoPE of its last 64 dims",
           {{"tokens", 4, 0, 1 << 20, "tokens"},
            {"heads", 16, 1, 128, "heads per token"},
            {"token_gap", 0, 0, 1 << 20, "elements between tokens of q, guarded"},
            kOutGap},
           {kPositions},
           {kHeadRounding, kPlacement}},
          make_problem_of<QHeadProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
