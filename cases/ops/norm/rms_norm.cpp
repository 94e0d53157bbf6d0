// SPDX-License-Identifier: Apache-2.0
//
// Cases of rms_norm: strided rows, one or two roundings, with and without a weight.
#include "reference/norm/rms_norm.h"

#include <utility>

#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace rms_norm_cases {

using P = plumb_rms_norm_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  const Formula stride = t.scalar("x_row_stride", &P::x_row_stride, hidden + parameter("row_gap"));
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kRounding);
  t.input("x", &P::x, {tokens, hidden}, "rows to normalise").strides({stride, 1});
  t.input("weight", &P::weight, {hidden}, "factor of each column").when(parameter("weight"));
  t.output("out", &P::out, {tokens, hidden}, "normalised rows");
  t.strides({{"out_row_stride", &P::out_row_stride}});
  return tokens;
}

class RmsNormProblem final : public TableProblem<P> {
 public:
  RmsNormProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), weighted_(row.integer("weight") != 0) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("x"), step.live, mix(step.seed, 1), step);
    if (weighted_) fill_norm_weight(tensors.at("weight"), mix(step.seed, 2), step.fill);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    reference::RmsNormInputs inputs;
    inputs.x = tensors.at("x").data<std::uint16_t>();
    inputs.weight = weighted_ ? tensors.at("weight").data<std::uint16_t>() : nullptr;
    inputs.tokens = p_.tokens;
    inputs.hidden = p_.hidden;
    inputs.x_row_stride = p_.x_row_stride;
    inputs.eps = static_cast<double>(p_.eps);
    inputs.rounding = rounding_of(p_.rounding);
    auto expected = mark_structured(reference::rms_norm(inputs, numerics), step.fill);
    const HostTensor& out = tensors.at("out");
    return {expect_floats(out, std::move(expected), promised_rows(step, out.spec()),
                          groups_of(p_.tokens, 1, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens, step.live, step.dead_rows);
  }

  double cost() const override { return norm_cost(p_.tokens, p_.hidden); }

  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens, p_.hidden);
  }

 private:
  bool weighted_;
};

}  // namespace rms_norm_cases

OpDefinition define_rms_norm() {
  using namespace rms_norm_cases;
  return {{"rms_norm",
           "out = x / sqrt(mean(x^2) + eps) * weight",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"hidden", 7168, 1, 1 << 20, "columns"},
            {"row_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            {"weight", 1, 0, 1, "0: no weight (a factor of 1)"},
            kOutGap},
           {},
           {kRounding}},
          make_problem_of<RmsNormProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
