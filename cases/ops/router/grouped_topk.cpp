// SPDX-License-Identifier: Apache-2.0
//
// Cases of grouped_topk. Rows are tokens; padded ones are routed like live ones.
#include "reference/router/grouped_topk.h"

#include <plumb/ops/router.h>

#include <utility>

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"

namespace plumb::cases {

namespace grouped_topk_cases {

using P = plumb_grouped_topk_params;

// vLLM's small-expert kernel: the first value of each choice. vLLM's generic kernel: arithmetic
// logits_format, nonfinite guard_choice_only. AITER as vLLM calls it: bias_format logits_format.
// FlagGems: arithmetic logits_format_tanh, since it computes the sigmoid with tensors of that
// format.
const ContractChoice kArithmetic{"arithmetic",
                                 {"fp32", "logits_format", "logits_format_tanh"},
                                 "format of scores, biases and their sums; logits_format_tanh: of "
                                 "the tanh that a score is made of as well"};
const ContractChoice kNonfinite{"nonfinite",
                                {"ordered_bits", "guard_choice_only", "guard_all"},
                                "what a logit that is not finite does"};
const ContractChoice kDomain{"kernel_domain",
                             {"everywhere", "small_experts_in_fp32"},
                             "shapes for which arithmetic and nonfinite hold"};
const ContractChoice kBiasFormat{
    "bias_format", {"fp32", "logits_format"}, "to which the bias is rounded before it is added"};

Formula members(TablePart<P>& t) {
  const auto [tokens, experts, topk] = add_router(t);
  t.scalar("n_group", &P::n_group);
  t.scalar("topk_group", &P::topk_group);
  t.choice("arithmetic", &P::arithmetic, kArithmetic);
  t.choice("nonfinite", &P::nonfinite, kNonfinite);
  t.choice("kernel_domain", &P::kernel_domain, kDomain);
  t.choice("bias_format", &P::bias_format, kBiasFormat);
  add_expert_choices(t);
  t.input("bias", &P::bias, {experts}, "for the choice, not for the weight");
  t.output("weights", &P::weights, {tokens, topk}, "of the chosen experts");
  t.strides({{"weights_row_stride", &P::weights_row_stride}});
  t.output("ids", &P::ids, {tokens, topk}, "chosen experts");
  t.strides({{"ids_row_stride", &P::ids_row_stride}});
  return tokens;
}

class GroupedTopKProblem final : public TableProblem<P> {
 public:
  GroupedTopKProblem(const Row& row, const device::Properties& device)
      : TableProblem(table_of<members>(), row, device), shape_(row, p_), device_(device) {
    shape_.n_group = p_.n_group;
    shape_.topk_group = p_.topk_group;
    shape_.exact_logits = {-1000, 0, 1000};  // scores 0, 1/2, 1
    if (p_.experts % p_.n_group != 0 || p_.experts < 2 * p_.n_group || p_.topk_group > p_.n_group ||
        p_.topk > p_.topk_group * (p_.experts / p_.n_group)) {
      throw BadRow(row.where + ": groups do not fit experts and topk");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_router_logits(shape_, step, tensors.at("logits"));
    fill_router_bias(shape_, step, tensors.at("bias"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const reference::GroupedTopK inputs = reference_input(tensors);
    auto choices = reference::grouped_topk_choices(inputs, numerics);
    free_choices(p_, choices);
    choices.experts.score.structured = choices.group.score.structured = step.fill != Fill::real;
    const auto ids = packed<std::int32_t>(tensors.at("ids"));
    auto weights = reference::grouped_topk_weights(inputs, choices, ids.data(), numerics);
    const bool guarded = inputs.nonfinite == reference::Nonfinite::guard_all;
    return {expect_choices(tensors.at("ids"), choices),
            expect_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill),
                          guarded ? RowMask{} : rows_without_nan(inputs.logits),
                          groups_of(shape_.tokens, 1, "token"))};
  }

  double cost() const override {
    const double reductions = static_cast<double>(shape_.topk) + 1;
    const double groups = static_cast<double>(device_.wave_size * (shape_.n_group + 2));
    return static_cast<double>(shape_.tokens) *
           (router_token_cost(shape_, reductions, 2, device_) + groups * kShuffleCost);
  }

  double checked_factor() const override { return 2; }

  ReferenceWork reference_work() const override {
    return {.bytes = reference_bytes(make_tensors()),
            .exps = static_cast<double>(shape_.tokens * shape_.experts)};
  }

 private:
  reference::GroupedTopK reference_input(const TensorSet& tensors) const {
    reference::GroupedTopK inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    inputs.bias = tensors.at("bias").data<float>();
    inputs.n_group = static_cast<std::int32_t>(p_.n_group);
    inputs.topk_group = static_cast<std::int32_t>(p_.topk_group);
    inputs.topk = static_cast<std::int32_t>(p_.topk);
    inputs.renormalize = p_.renormalize != 0;
    inputs.scale = static_cast<double>(p_.routed_scaling_factor);
    inputs.bias_in_logits_format = p_.bias_format == PLUMB_BIAS_LOGITS_FORMAT;
    const bool split = p_.kernel_domain == PLUMB_DOMAIN_SMALL_EXPERTS_IN_FP32;
    if (split && reference::has_small_experts(inputs)) return inputs;
    inputs.in_logits_format = p_.arithmetic != PLUMB_ROUTER_FP32;
    inputs.tanh_in_logits_format = p_.arithmetic == PLUMB_ROUTER_LOGITS_FORMAT_TANH;
    inputs.nonfinite = static_cast<reference::Nonfinite>(p_.nonfinite);
    return inputs;
  }

  RouterShape shape_;
  device::Properties device_;
};

}  // namespace grouped_topk_cases

OpDefinition define_grouped_topk() {
  using namespace grouped_topk_cases;
  std::vector<Parameter> parameters = router_parameters(256, 8, 2500);
  parameters.push_back({"n_group", 8, 1, 32, "groups of experts"});
  parameters.push_back({"topk_group", 4, 1, 32, "groups that are kept"});
  return {{"grouped_topk",
           "router of V3.2: sigmoid scores with a bias, best groups, best experts of those",
           std::move(parameters),
           {kBias},
           {kArithmetic, kNonfinite, kDomain, kBiasFormat, kRouterTies, kRouterOrder}},
          make_problem_of<GroupedTopKProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
