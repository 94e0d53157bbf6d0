// SPDX-License-Identifier: Apache-2.0
//
// Cases of mtp_shared_head_rms_norm: rows of x are contiguous, and no token is masked.
#include "reference/norm/mtp_shared_head_rms_norm.h"

#include <utility>

#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace mtp_shared_head_rms_norm_cases {

using P = plumb_mtp_shared_head_rms_norm_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kRounding);
  t.input("x", &P::x, {tokens, hidden}, "hidden states of the drafter");
  t.input("weight", &P::weight, {hidden}, "factor of each column");
  t.output("out", &P::out, {tokens, hidden}, "normalised rows");
  t.strides({{"out_row_stride", &P::out_row_stride}});
  return tokens;
}

class MtpSharedHeadProblem final : public TableProblem<P> {
 public:
  MtpSharedHeadProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("x"), step.live, mix(step.seed, 1), step);
    fill_norm_weight(tensors.at("weight"), mix(step.seed, 2), step.fill);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    auto expected = mark_structured(
        reference::mtp_shared_head_rms_norm(
            tensors.at("x").data<std::uint16_t>(), tensors.at("weight").data<std::uint16_t>(),
            p_.tokens, p_.hidden, static_cast<double>(p_.eps), rounding_of(p_.rounding), numerics),
        step.fill);
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
};

}  // namespace mtp_shared_head_rms_norm_cases

OpDefinition define_mtp_shared_head_rms_norm() {
  using namespace mtp_shared_head_rms_norm_cases;
  return {{"mtp_shared_head_rms_norm",
           "rms_norm of the drafter's hidden states before the shared head",
           {{"tokens", 4, 0, 1 << 20, "rows"}, {"hidden", 7168, 1, 1 << 20, "columns"}, kOutGap},
           {},
           {kRounding}},
          make_problem_of<MtpSharedHeadProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
