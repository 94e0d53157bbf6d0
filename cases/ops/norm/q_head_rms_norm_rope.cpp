// SPDX-License-Identifier: Apache-2.0
//
// Cases of q_head_rms_norm_rope: heads of very different norm, rotated by near and far positions.
#include "reference/norm/q_head_rms_norm_rope.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/norm/rope_inputs.h"

namespace plumb::cases {

namespace {

using reference::kHeadDim;

using P = plumb_q_head_rms_norm_rope_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), heads = t.scalar("heads", &P::heads);
  const Formula stride =
      t.scalar("q_token_stride", &P::q_token_stride, heads * kHeadDim + parameter("token_gap"));
  t.real("eps", &P::eps, kNormEps);
  t.input("q", &P::q, {tokens, heads, kHeadDim}).strides({stride, kHeadDim, 1});
  add_rope(t, tokens);
  t.output("out", &P::out, {tokens, heads, kHeadDim});
  t.strides({{"out_token_stride", &P::out_token_stride}, {"out_head_stride", &P::out_head_stride}});
  return tokens;
}

class QHeadProblem final : public TableProblem<P> {
 public:
  QHeadProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), positions_(positions_of(row)) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("q"), step.live * p_.heads, mix(step.seed, 1), step);
    fill_rope(step, positions_, tensors);
    paint_gaps(tensors.at("q"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    auto expected = reference::q_head_rms_norm_rope(
        {tensors.at("q").data<std::uint16_t>(), tensors.at("cos_sin").data<float>(),
         rope_rows(tensors), p_.tokens, p_.heads, p_.q_token_stride, static_cast<double>(p_.eps)},
        numerics);
    const HostTensor& out = tensors.at("out");
    return {expect_floats(out, mark_structured(std::move(expected), step.fill),
                          promised_rows(step, out.spec()),
                          groups_of(p_.tokens * p_.heads, p_.heads, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens * p_.heads, step.live * p_.heads, step.dead_rows);
  }

  // A wave per head: five or six shuffles.
  double cost() const override {
    return static_cast<double>(p_.tokens * p_.heads) * (6.0 * kHeadDim + 32 * 5.5 * kShuffleCost);
  }
  double checked_factor() const override { return 3; }  // mostly shuffles
  double reference_cost() const override {
    return 40.0 * static_cast<double>(p_.tokens * p_.heads * kHeadDim);
  }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens * p_.heads, kHeadDim);
  }

 private:
  void place(TensorSpec& spec) const override { place_rope(spec); }

  Positions positions_;
};

}  // namespace

OpDefinition define_q_head_rms_norm_rope() {
  return {{"q_head_rms_norm_rope",
           "the norm of each query head, then RoPE of its last 64 dims",
           {{"tokens", 4, 0, 1 << 20, "tokens"},
            {"heads", 16, 1, 128, "heads per token"},
            {"token_gap", 0, 0, 1 << 20, "elements between tokens of q, guarded"},
            kOutGap},
           {"positions"}},
          make_problem_of<QHeadProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
