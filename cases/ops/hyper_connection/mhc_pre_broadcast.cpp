// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_pre_broadcast. One input stream stands for four equal ones, which the op also
// writes. These copies are compared bit for bit.
#include "reference/hyper_connection/mhc_pre_broadcast.h"

#include <algorithm>

#include "cases/ops/hyper_connection/mhc_mixing.h"

namespace plumb::cases {

namespace mhc_pre_broadcast_cases {

using P = plumb_mhc_pre_broadcast_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  const Formula stride =
      t.scalar("residual_token_stride", &P::residual_token_stride, hidden + parameter("token_gap"));
  t.input("residual", &P::residual, {tokens, hidden}, "one stream that stands for four")
      .strides({stride, 1});
  t.output("residual_out", &P::residual_out, {tokens, kStreams, hidden}, "residual, four times");
  t.strides({{"residual_out_token_stride", &P::residual_out_token_stride},
             {"residual_out_slot_stride", &P::residual_out_slot_stride}});
  add_mixing(t, tokens, hidden, hidden);
  return tokens;
}

class MhcBroadcastProblem final : public TableProblem<P> {
 public:
  MhcBroadcastProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), mixing_(row, p_, p_.hidden) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(step, mixing_.streams_fill(), tensors.at("residual"));
    mixing_.fill(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    const HostTensor& residual = tensors.at("residual");
    const auto inputs =
        mixing_.inputs(tensors, reference::broadcast(residual.data<std::uint16_t>(), p_.tokens,
                                                     p_.hidden, p_.residual_token_stride));
    Expectations expectations = {expect_bits(tensors.at("residual_out"), four_times(residual), {},
                                             "differs from the residual")};
    append(mixing_.expect(step, tensors, inputs, reference::mhc_pre_partials(inputs, numerics),
                          numerics, declared),
           expectations);
    return expectations;
  }

  // residual_out is a copy: all its rows are promised, whatever padding holds.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return spec.name == "residual_out" ? RowMask{} : mixing_.promised(step, spec.name);
  }

  double cost() const override {
    return mixing_.cost() + 4 * static_cast<double>(p_.tokens * p_.hidden);
  }
  double reference_cost() const override { return mixing_.reference_cost(); }
  ReferenceWork reference_work() const override { return mixing_.reference_work(make_tensors()); }
  double checked_factor() const override { return 14; }

 private:
  HostTensor four_times(const HostTensor& residual) const {
    HostTensor out({"residual_out", Dtype::bf16, {p_.tokens, kStreams, p_.hidden}, {}});
    for (std::int64_t row = 0; row < out.rows(); ++row) {
      std::copy_n(residual.row<std::uint16_t>(row / kStreams), p_.hidden,
                  out.row<std::uint16_t>(row));
    }
    return out;
  }

  MhcMixing mixing_;
};

}  // namespace mhc_pre_broadcast_cases

OpDefinition define_mhc_pre_broadcast() {
  using namespace mhc_pre_broadcast_cases;
  return {{"mhc_pre_broadcast",
           "mhc_pre of the first layer: one stream that stands for four",
           mixing_parameters(),
           {kNormsWord, kLogitsWord}},
          make_problem_of<MhcBroadcastProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
