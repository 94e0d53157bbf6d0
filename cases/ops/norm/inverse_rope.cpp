// SPDX-License-Identifier: Apache-2.0
//
// Cases of inverse_rope, in place and into another tensor. The dims that are not rotated keep their
// bits, also in padded rows.
#include "reference/norm/inverse_rope.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/norm/rope_inputs.h"

namespace plumb::cases {

namespace inverse_rope_cases {

using reference::kHeadDim, reference::kNopeDim;

using P = plumb_inverse_rope_params;

// in_place: vLLM on ROCm, DeepSeek's model.py, SGLang. copy: vLLM's functional form.
const ContractChoice kPlacement{"placement",
                                {"in_place", "copy"},
                                "the heads are overwritten, or written to out",
                                {{"*", "*", "the buffers differ: such a pair cannot run"}}};

Formula members(TablePart<P>& t) {
  const Formula copies = word_is("placement", "copy");
  const Formula tokens = t.scalar("tokens", &P::tokens), heads = t.scalar("heads", &P::heads);
  const Formula stride =
      t.scalar("x_token_stride", &P::x_token_stride, heads * kHeadDim + parameter("token_gap"));
  t.given(copies, t.has("out", &P::out));
  t.in_place("x", &P::x, {tokens, heads, kHeadDim}, "rotated back in its last 64 dims")
      .strides({stride, kHeadDim, 1})
      .when(!copies);
  t.input("x", &P::x, {tokens, heads, kHeadDim}, "heads to rotate back in their last 64 dims")
      .strides({stride, kHeadDim, 1})
      .when(copies);
  add_rope(t, tokens);
  TablePart<P> copy = t.when(copies);
  copy.output("out", &P::out, {tokens, heads, kHeadDim}, "x, rotated back in its last 64 dims");
  copy.strides(
      {{"out_token_stride", &P::out_token_stride}, {"out_head_stride", &P::out_head_stride}});
  return tokens;
}

class InverseRopeProblem final : public TableProblem<P> {
 public:
  InverseRopeProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), positions_(positions_of(row)) {
    if (row.word("placement") == "copy") read_ = "x", written_ = "out";
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at(read_), step.live * p_.heads, mix(step.seed, 1), step);
    fill_rope(step, positions_, tensors);
    paint_gaps(tensors.at(read_));
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const HostTensor& before = tensors.at(read_);
    const HostTensor& x = tensors.at(written_);
    const std::string name(written_);
    const auto expected = mark_structured(
        reference::inverse_rope({before.data<std::uint16_t>(), tensors.at("cos_sin").data<float>(),
                                 rope_rows(tensors), p_.tokens, p_.heads, p_.x_token_stride}),
        step.fill);
    return {expect_bits(columns_of(x, name + " (not rotated)", 0, kNopeDim),
                        columns_of(before, name + " (not rotated)", 0, kNopeDim), {}, "changed"),
            expect_floats(columns_of(x, name + " (rotated)", kNopeDim, kHeadDim), expected,
                          promised_rows(step, x.spec()),
                          groups_of(p_.tokens * p_.heads, p_.heads, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens * p_.heads, step.live * p_.heads, step.dead_rows);
  }

  double cost() const override {
    constexpr double kThreads = 256;
    return static_cast<double>(p_.tokens) *
           (4.0 * 32 * static_cast<double>(p_.heads) + 7 * kThreads);
  }
  double checked_factor() const override { return 14; }

 private:
  void place(TensorSpec& spec) const override { place_rope(spec); }

  Positions positions_;
  std::string_view read_ = "x_before", written_ = "x";  // the tensors with the heads
};

}  // namespace inverse_rope_cases

OpDefinition define_inverse_rope() {
  using namespace inverse_rope_cases;
  return {{"inverse_rope",
           "the last 64 of each head's 512 dims rotated back",
           {{"tokens", 4, 0, 1 << 20, "tokens"},
            {"heads", 16, 1, 128, "heads per token"},
            {"token_gap", 0, 0, 1 << 20, "elements between tokens of x, guarded"},
            kOutGap},
           {kPositions},
           {kPlacement}},
          make_problem_of<InverseRopeProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
