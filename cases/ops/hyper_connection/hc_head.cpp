// SPDX-License-Identifier: Apache-2.0
//
// Cases of hc_head, with one and with two roundings to bf16.
#include "reference/hyper_connection/hc_head.h"

#include <plumb/ops/hyper_connection.h>

#include <utility>

#include "cases/ops/hyper_connection/hyper_connection.h"

namespace plumb::cases {

namespace hc_head_cases {

constexpr std::int64_t kRowsPerGroup = 64;

using P = plumb_hc_head_params;

// once: TileLang's kernel in vLLM, torch. twice: vLLM's Triton kernel, for ROCm.
const ContractChoice kHeadRounding{
    "rounding", {"once", "twice"}, "to bf16: of the output, or of x r in front of fn as well"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  const Formula slot =
      t.scalar("hidden_slot_stride", &P::hidden_slot_stride, slot_stride_of(hidden));
  const Formula token =
      t.scalar("hidden_token_stride", &P::hidden_token_stride, token_stride_of(slot));
  t.real("rms_eps", &P::rms_eps, negative_power_of_ten("rms_eps_exponent"),
         "added to the mean of the squares");
  t.real("hc_eps", &P::hc_eps, negative_power_of_ten("hc_eps_exponent"), "added to the gates");
  t.choice("rounding", &P::rounding, kHeadRounding);
  t.input("hidden_states", &P::hidden_states, {tokens, kStreams, hidden}, "the streams")
      .strides({token, slot, 1});
  t.input("fn", &P::fn, {kStreams, hidden * kStreams}, "weights of the gates");
  t.input("scale", &P::scale, {1}, "factor of the gates");
  t.input("base", &P::base, {kStreams}, "added to each gate");
  t.output("out", &P::out, {tokens, hidden}, "gated sum of the streams");
  t.strides({{"out_row_stride", &P::out_row_stride}});
  return tokens;
}

class HcHeadProblem final : public TableProblem<P> {
 public:
  HcHeadProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        norms_(norms_of(row)),
        logits_(logits_of(row)) {
    check_trivial_tokens(row);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(step, {norms_, p_.rms_eps > 0}, tensors.at("hidden_states"));
    fill_mixing(step, logits_, tensors.at("fn"), tensors.at("scale"), tensors.at("base"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    reference::HcHead inputs;
    inputs.hidden_states = {tensors.at("hidden_states").data<std::uint16_t>(), p_.tokens, p_.hidden,
                            p_.hidden_token_stride, p_.hidden_slot_stride};
    inputs.fn = tensors.at("fn").data<float>();
    inputs.scale = tensors.at("scale").data<float>();
    inputs.base = tensors.at("base").data<float>();
    inputs.rms_eps = p_.rms_eps;
    inputs.hc_eps = p_.hc_eps;
    inputs.round_normalised = p_.rounding == PLUMB_ROUND_TWICE;
    reference::Estimate expected = reference::hc_head(inputs, numerics);
    adapt_gated_sum(step, expected);
    const HostTensor& out = tensors.at("out");
    return {expect_floats(out, std::move(expected), promised_rows(step, out.spec()),
                          groups_of(out.rows(), kRowsPerGroup, "tokens"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const std::int64_t rows = spec.name == "hidden_states" ? kStreams : 1;
    return promised_tokens(step, p_.rms_eps > 0, p_.tokens, rows);
  }

  double reference_cost() const override {
    return 100.0 * static_cast<double>(p_.tokens * p_.hidden);
  }
  double cost() const override {
    const auto columns = static_cast<double>(kStreams * p_.hidden);
    const double joining = (kStreams + 1) * (5 * kShuffleCost + kBarrierCost);
    return static_cast<double>(p_.tokens) *
           (columns * (kStreams + 2) + token_threads(p_.hidden) * joining);
  }

  // Multiply-adds per element of K: one for its square, four for the products with fn, and one for
  // the gated sum.
  ReferenceWork reference_work() const override {
    const auto tokens = static_cast<double>(p_.tokens);
    const auto columns = static_cast<double>(kStreams * p_.hidden);
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = tokens * columns * (kStreams + 2),
            .exps = tokens * kStreams,
            .rsqrts = tokens};
  }

 private:
  Norms norms_;
  LogitRange logits_;
};

}  // namespace hc_head_cases

OpDefinition define_hc_head() {
  using namespace hc_head_cases;
  std::vector<Parameter> parameters = stream_parameters();
  parameters.insert(parameters.end(),
                    {{"rms_eps_exponent", 6, 0, 30, "rms_eps is 10^-n; 0: none", true},
                     {"hc_eps_exponent", 6, 0, 30, "hc_eps is 10^-n; 0: none", true}});
  return {{"hc_head",
           "gated sum of the four streams before the LM head",
           std::move(parameters),
           {kNormsWord, kLogitsWord},
           {kHeadRounding}},
          make_problem_of<HcHeadProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
