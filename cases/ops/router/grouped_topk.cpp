// SPDX-License-Identifier: Apache-2.0
//
// Cases of grouped_topk. Rows are tokens; dead ones are routed like any other.
#include "reference/router/grouped_topk.h"

#include <plumb/ops/router.h>

#include <utility>

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"

namespace plumb::cases {

namespace {

using P = plumb_grouped_topk_params;

Formula members(TablePart<P>& t) {
  const auto [tokens, experts, topk] = add_router(t);
  t.scalar("n_group", &P::n_group);
  t.scalar("topk_group", &P::topk_group);
  t.word(
      "arithmetic", &P::arithmetic,
      {"arithmetic", {{"fp32", PLUMB_ROUTER_FP32}, {"logits_format", PLUMB_ROUTER_LOGITS_FORMAT}}});
  t.input("bias", &P::bias, {experts}, "for the choice, not for the weight");
  t.output("weights", &P::weights, {tokens, topk}, "of the chosen experts");
  t.strides({{"weights_row_stride", &P::weights_row_stride}});
  t.output("ids", &P::ids, {tokens, topk}, "chosen experts, by descending score + bias");
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
    reference::GroupedTopK inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    inputs.bias = tensors.at("bias").data<float>();
    inputs.n_group = static_cast<std::int32_t>(p_.n_group);
    inputs.topk_group = static_cast<std::int32_t>(p_.topk_group);
    inputs.topk = static_cast<std::int32_t>(p_.topk);
    inputs.in_logits_format = p_.arithmetic == PLUMB_ROUTER_LOGITS_FORMAT;
    inputs.renormalize = p_.renormalize != 0;
    inputs.scale = static_cast<double>(p_.routed_scaling_factor);
    auto choices = reference::grouped_topk_choices(inputs, numerics);
    choices.experts.score.structured = choices.group.score.structured = step.fill != Fill::real;
    const auto ids = packed<std::int32_t>(tensors.at("ids"));
    auto weights = reference::grouped_topk_weights(inputs, choices, ids.data(), numerics);
    return {expect_choices(tensors.at("ids"), choices),
            expect_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill), {},
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
  RouterShape shape_;
  device::Properties device_;
};

}  // namespace

OpDefinition define_grouped_topk() {
  std::vector<Parameter> parameters = router_parameters(256, 8, 2500);
  parameters.push_back({"n_group", 8, 1, 32, "groups of experts"});
  parameters.push_back({"topk_group", 4, 1, 32, "groups that are kept"});
  return {{"grouped_topk",
           "router of V3.2: sigmoid scores with a bias, best groups, best experts of those",
           std::move(parameters),
           {"arithmetic", "bias"}},
          make_problem_of<GroupedTopKProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
