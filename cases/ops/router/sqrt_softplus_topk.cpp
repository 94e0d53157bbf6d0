// SPDX-License-Identifier: Apache-2.0
//
// Cases of sqrt_softplus_topk. Rows are tokens. A padding mask, if the case has one, covers padded
// tokens and every fifth live one. Without a mask, padded tokens are routed like live ones.
#include "reference/router/sqrt_softplus_topk.h"

#include <plumb/ops/router.h>

#include <utility>

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"

namespace plumb::cases {

namespace sqrt_softplus_topk_cases {

using P = plumb_sqrt_softplus_topk_params;

const ContractChoice kWeight{"weight",
                             {"score", "recovered"},
                             "what weights are made of: the score, or (score + bias) - bias",
                             {{"score", "recovered", "the bound of recovered is wider"}}};

ContractChoice nan_score_choice() {
  ContractChoice choice = kNanScore;
  choice.unseparated = {{"zero", "nan", "a row with a NaN is open"}};
  return choice;
}

Formula members(TablePart<P>& t) {
  const auto [tokens, experts, topk] = add_router(t);
  t.choice("weight", &P::weight, kWeight);
  add_softplus_choices(t);
  add_expert_choices(t);
  t.input("bias", &P::bias, {experts}, "for the choice");
  t.input("is_padding", &P::is_padding, {tokens}, "1: the token gets no expert")
      .when(parameter("padding_mask"));
  t.output("weights", &P::weights, {tokens, topk}, "of the chosen experts");
  t.strides({{"weights_row_stride", &P::weights_row_stride}});
  t.output("ids", &P::ids, {tokens, topk}, "chosen experts");
  t.strides({{"ids_row_stride", &P::ids_row_stride}});
  t.output("token_expert_indices", &P::token_expert_indices, {tokens, topk}, "k * tokens + t")
      .when(parameter("token_expert_indices"));
  t.strides({{"token_expert_indices_row_stride", &P::token_expert_indices_row_stride}});
  return tokens;
}

class SqrtSoftplusTopKProblem final : public TableProblem<P> {
 public:
  SqrtSoftplusTopKProblem(const Row& row, const device::Properties& device)
      : TableProblem(table_of<members>(), row, device),
        shape_(row, p_),
        device_(device),
        masked_(row.integer("padding_mask") != 0),
        indexed_(row.integer("token_expert_indices") != 0) {
    shape_.exact_logits = exact_softplus_logits(softplus_rules(p_));
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_router_logits(shape_, step, tensors.at("logits"));
    fill_router_bias(shape_, step, tensors.at("bias"));
    if (!masked_) return;
    auto* is_padding = tensors.at("is_padding").data<std::uint8_t>();
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      is_padding[token] = token >= step.live || token % 5 == 3;
    }
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    reference::SqrtSoftplusTopK inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    inputs.bias = tensors.at("bias").data<float>();
    inputs.is_padding = masked_ ? tensors.at("is_padding").data<std::uint8_t>() : nullptr;
    inputs.topk = static_cast<std::int32_t>(p_.topk);
    inputs.recovered_weight = p_.weight == PLUMB_WEIGHT_RECOVERED;
    inputs.renormalize = p_.renormalize != 0;
    inputs.scale = static_cast<double>(p_.routed_scaling_factor);
    inputs.rules = softplus_rules(p_);
    auto choices = reference::sqrt_softplus_topk_choices(inputs, numerics);
    free_choices(p_, choices);
    choices.experts.score.structured = step.fill != Fill::real;
    const auto ids = packed<std::int32_t>(tensors.at("ids"));
    auto weights = reference::sqrt_softplus_topk_weights(inputs, ids.data(), numerics);
    Expectations expectations = {
        expect_choices(tensors.at("ids"), choices),
        expect_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill),
                      promised_weights(choices), groups_of(shape_.tokens, 1, "token"))};
    if (indexed_) {
      expectations.push_back(expect_exact(tensors.at("token_expert_indices"), indices(), {}));
    }
    return expectations;
  }

  bool rows_have_places() const override { return !indexed_; }
  double cost() const override {
    const double reductions = static_cast<double>(shape_.topk) + 1;
    return static_cast<double>(shape_.tokens) * router_token_cost(shape_, reductions, 1, device_);
  }

  double checked_factor() const override { return 2; }

  ReferenceWork reference_work() const override {
    const auto scores = static_cast<double>(shape_.tokens * shape_.experts);
    return {
        .bytes = reference_bytes(make_tensors()), .exps = scores, .logs = scores, .rsqrts = scores};
  }

 private:
  // Weights are not promised for tokens for which any experts are right.
  static RowMask promised_weights(const reference::ScoredChoices& choices) {
    RowMask mask;
    for (const auto rule : choices.rule) {
      mask.push_back(rule != reference::ScoredChoices::Rule::any_expert);
    }
    return mask;
  }

  std::vector<std::int64_t> indices() const {
    std::vector<std::int64_t> expected;
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      for (std::int64_t k = 0; k < shape_.topk; ++k) expected.push_back(k * shape_.tokens + token);
    }
    return expected;
  }

  RouterShape shape_;
  device::Properties device_;
  bool masked_, indexed_;
};

}  // namespace sqrt_softplus_topk_cases

OpDefinition define_sqrt_softplus_topk() {
  using namespace sqrt_softplus_topk_cases;
  std::vector<Parameter> parameters = router_parameters(256, 6, 1500);
  parameters.push_back({"padding_mask", 0, 0, 1, "1: a mask of tokens that get no expert"});
  parameters.push_back({"token_expert_indices", 0, 0, 1, "1: writes k * tokens + t"});
  return {{"sqrt_softplus_topk",
           "router of V4: sqrt(softplus) scores with a bias, best experts",
           std::move(parameters),
           {kBias, kRouterLogits},
           {kWeight, kSoftplus, kSoftplusSmall, nan_score_choice(), kZeroSum, kRouterTies,
            kRouterOrder}},
          make_problem_of<SqrtSoftplusTopKProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
