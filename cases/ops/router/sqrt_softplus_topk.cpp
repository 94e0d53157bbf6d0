// SPDX-License-Identifier: Apache-2.0
//
// Cases of sqrt_softplus_topk. Rows are tokens. Where a case has a padding mask, it covers the dead
// rows and every fifth live one; without a mask, dead rows are routed like any other.
#include "reference/router/sqrt_softplus_topk.h"

#include "cases/judge/judge_choices.h"
#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"

namespace plumb::cases {

namespace {

class SqrtSoftplusTopKProblem final : public Problem {
 public:
  SqrtSoftplusTopKProblem(const Row& row, const device::Properties& device)
      : shape_(router_shape(row)),
        device_(device),
        masked_(row.integer("padding_mask") != 0),
        indexed_(row.integer("token_expert_indices") != 0),
        recovered_(row.integer("recovered_weight") != 0),
        renormalize_(row.integer("renormalize") != 0),
        scale_(static_cast<float>(row.integer("scale_permille")) / 1000.0F) {
    shape_.exact_logits = {-1000, 64, 256};  // scores 0, 8, 16
  }

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    const std::vector<std::int64_t> chosen = {shape_.tokens, shape_.topk};
    TensorSet tensors;
    tensors.add(shape_.logits());
    tensors.add({"bias", Dtype::f32, {shape_.experts}});
    if (masked_) tensors.add({"is_padding", Dtype::u8, {shape_.tokens}});
    tensors.add({"weights", Dtype::f32, chosen, {}, Role::output});
    tensors.add({"ids", Dtype::i32, chosen, {}, Role::output});
    if (indexed_) tensors.add({"token_expert_indices", Dtype::i32, chosen, {}, Role::output});
    return tensors;
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

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_sqrt_softplus_topk_params p{};
    p.logits = tensors.get<void>("logits");
    p.bias = tensors.get<float>("bias");
    p.is_padding = tensors.get<std::uint8_t>("is_padding");
    p.weights = tensors.get<float>("weights");
    p.ids = tensors.get<std::int32_t>("ids");
    p.token_expert_indices = tensors.get<std::int32_t>("token_expert_indices");
    p.tokens = shape_.tokens;
    p.logits_row_stride = shape_.row_stride();
    p.experts = static_cast<std::int32_t>(shape_.experts);
    p.topk = static_cast<std::int32_t>(shape_.topk);
    p.logits_format = shape_.bf16 ? PLUMB_BF16 : PLUMB_F32;
    p.weight = recovered_ ? PLUMB_WEIGHT_RECOVERED : PLUMB_WEIGHT_SCORE;
    p.renormalize = renormalize_;
    p.routed_scaling_factor = scale_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::SqrtSoftplusTopK inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    inputs.bias = tensors.at("bias").data<float>();
    inputs.is_padding = masked_ ? tensors.at("is_padding").data<std::uint8_t>() : nullptr;
    inputs.topk = static_cast<std::int32_t>(shape_.topk);
    inputs.recovered_weight = recovered_;
    inputs.renormalize = renormalize_;
    inputs.scale = static_cast<double>(scale_);
    auto choices = reference::sqrt_softplus_topk_choices(inputs, numerics);
    choices.experts.score.structured = step.fill != Fill::real;
    const auto* ids = tensors.at("ids").data<std::int32_t>();
    auto weights = reference::sqrt_softplus_topk_weights(inputs, ids, numerics);
    std::vector<TensorReport> reports = {
        judge_choices(tensors.at("ids"), choices),
        judge_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill), {},
                     groups_of(shape_.tokens, 1, "token"))};
    if (indexed_) {
      reports.push_back(judge_exact(tensors.at("token_expert_indices"), indices(), {}));
    }
    return reports;
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
  std::vector<std::int64_t> indices() const {
    std::vector<std::int64_t> expected;
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      for (std::int64_t k = 0; k < shape_.topk; ++k) expected.push_back(k * shape_.tokens + token);
    }
    return expected;
  }

  RouterShape shape_;
  device::Properties device_;
  bool masked_, indexed_, recovered_, renormalize_;
  float scale_;
};

}  // namespace

OpDefinition define_sqrt_softplus_topk() {
  OpDefinition op;
  op.name = "sqrt_softplus_topk";
  op.summary = "router of V4: sqrt(softplus) scores with a bias, best experts";
  op.parameters = router_parameters(256, 6, 1500);
  op.parameters.push_back({"padding_mask", 0, 0, 1, "1: a mask of tokens that get no expert"});
  op.parameters.push_back({"token_expert_indices", 0, 0, 1, "1: writes k * tokens + t"});
  op.parameters.push_back({"recovered_weight", 0, 0, 1, "1: weights of (score + bias) - bias"});
  op.word_parameters = {"bias"};
  op.make_problem = [](const Row& row,
                       const device::Properties& device) -> std::unique_ptr<Problem> {
    return std::make_unique<SqrtSoftplusTopKProblem>(row, device);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
