// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_pre. The op reads the four stored streams. cases/ops/hyper_connection/mhc_mixing.h
// has the rest of its cases.
#include "reference/hyper_connection/mhc_pre.h"

#include "cases/ops/hyper_connection/mhc_mixing.h"

namespace plumb::cases {

namespace mhc_pre_cases {

using P = plumb_mhc_pre_params;

// operand: what DeepseekV4HyperConnection of transformers computes.
const ContractChoice kScaled{
    "scaled",
    {"product", "operand"},
    "what 1/rms multiplies: the product with fn, or the streams in front of it",
    {{"product", "operand", "a wider error"},
     {"operand", "product", "plumb's kernel multiplies the product under either"}}};

// bf16: FlagGems, whose product of bf16 matrices has a bf16 result.
const ContractChoice kMixesFormat{
    "mixes", {"fp32", "bf16"}, "format of the products with fn, in front of 1/rms"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  add_residual(t, tokens, hidden);
  add_mixing(t, tokens, hidden, hidden * kStreams);
  t.choice("scaled", &P::scaled, kScaled);
  t.choice("mixes", &P::mixes, kMixesFormat);
  return tokens;
}

class MhcPreProblem final : public TableProblem<P> {
 public:
  MhcPreProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), mixing_(row, p_, kStreams * p_.hidden) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(step, mixing_.streams_fill(), tensors.at("residual"));
    mixing_.fill(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    auto inputs = mixing_.inputs(tensors, residual_of(p_, tensors.at("residual")));
    inputs.bf16_mixes = p_.mixes == PLUMB_MIXES_BF16;
    inputs.scaled_streams = p_.scaled == PLUMB_SCALED_OPERAND;
    return mixing_.expect(step, tensors, inputs, reference::mhc_pre_partials(inputs, numerics),
                          numerics, declared);
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return mixing_.promised(step, spec.name);
  }

  double cost() const override { return mixing_.cost(); }
  double reference_cost() const override { return mixing_.reference_cost(); }
  double checked_factor() const override { return 14; }

  ReferenceWork reference_work() const override { return mixing_.reference_work(make_tensors()); }

 private:
  MhcMixing mixing_;
};

}  // namespace mhc_pre_cases

OpDefinition define_mhc_pre() {
  using namespace mhc_pre_cases;
  return {{"mhc_pre",
           "hyper-connection mixing before a sublayer: post, comb and the sublayer's input",
           mixing_parameters(),
           {kNormsWord, kLogitsWord},
           {kScaled, kMixesFormat}},
          make_problem_of<MhcPreProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
