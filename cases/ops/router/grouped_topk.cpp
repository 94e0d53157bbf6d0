// SPDX-License-Identifier: Apache-2.0
//
// Cases of grouped_topk. Rows are tokens; dead ones are routed like any other.
#include "reference/router/grouped_topk.h"

#include "cases/judge/judge_choices.h"
#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"

namespace plumb::cases {

namespace {

class GroupedTopKProblem final : public Problem {
 public:
  GroupedTopKProblem(const Row& row, const device::Properties& device)
      : shape_(router_shape(row)),
        device_(device),
        in_logits_format_(row.word("arithmetic") == "logits_format"),
        renormalize_(row.integer("renormalize") != 0),
        scale_(static_cast<float>(row.integer("scale_permille")) / 1000.0F) {
    shape_.n_group = row.integer("n_group");
    shape_.topk_group = row.integer("topk_group");
    shape_.exact_logits = {-1000, 0, 1000};  // scores 0, 1/2, 1
    if (shape_.experts % shape_.n_group != 0 || shape_.experts < 2 * shape_.n_group ||
        shape_.topk_group > shape_.n_group ||
        shape_.topk > shape_.topk_group * (shape_.experts / shape_.n_group)) {
      throw BadRow(row.where + ": groups do not fit experts and topk");
    }
    if (!row.word("arithmetic").empty() && row.word("arithmetic") != "fp32" && !in_logits_format_) {
      throw BadRow(row.where + ": arithmetic is \"fp32\" or \"logits_format\"");
    }
  }

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(shape_.logits());
    tensors.add({"bias", Dtype::f32, {shape_.experts}});
    tensors.add({"weights", Dtype::f32, {shape_.tokens, shape_.topk}, {}, Role::output});
    tensors.add({"ids", Dtype::i32, {shape_.tokens, shape_.topk}, {}, Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_router_logits(shape_, step, tensors.at("logits"));
    fill_router_bias(shape_, step, tensors.at("bias"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_grouped_topk_params p{};
    p.logits = tensors.get<void>("logits");
    p.bias = tensors.get<float>("bias");
    p.weights = tensors.get<float>("weights");
    p.ids = tensors.get<std::int32_t>("ids");
    p.tokens = shape_.tokens;
    p.logits_row_stride = shape_.row_stride();
    p.experts = static_cast<std::int32_t>(shape_.experts);
    p.n_group = static_cast<std::int32_t>(shape_.n_group);
    p.topk_group = static_cast<std::int32_t>(shape_.topk_group);
    p.topk = static_cast<std::int32_t>(shape_.topk);
    p.logits_format = shape_.bf16 ? PLUMB_BF16 : PLUMB_F32;
    p.arithmetic = in_logits_format_ ? PLUMB_ROUTER_LOGITS_FORMAT : PLUMB_ROUTER_FP32;
    p.renormalize = renormalize_;
    p.routed_scaling_factor = scale_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::GroupedTopK inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    inputs.bias = tensors.at("bias").data<float>();
    inputs.n_group = static_cast<std::int32_t>(shape_.n_group);
    inputs.topk_group = static_cast<std::int32_t>(shape_.topk_group);
    inputs.topk = static_cast<std::int32_t>(shape_.topk);
    inputs.in_logits_format = in_logits_format_;
    inputs.renormalize = renormalize_;
    inputs.scale = static_cast<double>(scale_);
    auto choices = reference::grouped_topk_choices(inputs, numerics);
    choices.experts.score.structured = choices.group.score.structured = step.fill != Fill::real;
    const auto* ids = tensors.at("ids").data<std::int32_t>();
    auto weights = reference::grouped_topk_weights(inputs, choices, ids, numerics);
    return {judge_choices(tensors.at("ids"), choices),
            judge_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill), {},
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
  bool in_logits_format_, renormalize_;
  float scale_;
};

}  // namespace

OpDefinition define_grouped_topk() {
  OpDefinition op;
  op.name = "grouped_topk";
  op.summary = "router of V3.2: sigmoid scores with a bias, best groups, best experts of those";
  op.parameters = router_parameters(256, 8, 2500);
  op.parameters.push_back({"n_group", 8, 1, 32, "groups of experts"});
  op.parameters.push_back({"topk_group", 4, 1, 32, "groups that are kept"});
  op.word_parameters = {"arithmetic", "bias"};
  op.make_problem = [](const Row& row,
                       const device::Properties& device) -> std::unique_ptr<Problem> {
    return std::make_unique<GroupedTopKProblem>(row, device);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
