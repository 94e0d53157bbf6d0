// SPDX-License-Identifier: Apache-2.0
//
// Cases of hash_routing. Rows are tokens; dead ones hold token id 0. The table has the rows of a
// whole vocabulary on the device, and a few of them, spread out, on the host.
#include "reference/router/hash_routing.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kTableRows = 96;  // that tokens refer to

class HashRoutingProblem final : public Problem {
 public:
  HashRoutingProblem(const Row& row, const device::Properties& device)
      : shape_(router_shape(row)),
        device_(device),
        vocabulary_(row.integer("vocabulary")),
        strangers_(row.integer("strangers") != 0),
        renormalize_(row.integer("renormalize") != 0),
        scale_(static_cast<float>(row.integer("scale_permille")) / 1000.0F) {
    shape_.exact_logits = {-1000, 64, 256};  // scores 0, 8, 16
  }

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    const std::vector<std::int64_t> chosen = {shape_.tokens, shape_.topk};
    TensorSet tensors;
    tensors.add(shape_.logits());
    tensors.add({"input_ids", Dtype::i32, {shape_.tokens}});
    TensorSpec table{"tid2eid", Dtype::i32, {table_rows(), shape_.topk}};
    table.sparse = true;
    for (std::int64_t i = 0; i < table_rows(); ++i) table.placement.push_back(token_id(i));
    tensors.add(table);
    tensors.add({"weights_before", Dtype::f32, chosen});
    tensors.add({"ids_before", Dtype::i32, chosen});
    tensors.add({.name = "weights",
                 .dtype = Dtype::f32,
                 .shape = chosen,
                 .role = Role::output,
                 .starts_as = "weights_before"});
    tensors.add({.name = "ids",
                 .dtype = Dtype::i32,
                 .shape = chosen,
                 .role = Role::output,
                 .starts_as = "ids_before"});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_router_logits(shape_, step, tensors.at("logits"));
    fill_table(step, tensors.at("tid2eid"));
    auto* input_ids = tensors.at("input_ids").data<std::int32_t>();
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      const std::int64_t entry = integer(mix(step.seed, 4), token, 0, table_rows() - 1);
      input_ids[token] = static_cast<std::int32_t>(token < step.live ? token_id(entry) : 0);
    }
    auto* weights = tensors.at("weights_before").data<float>();
    auto* ids = tensors.at("ids_before").data<std::int32_t>();
    for (std::int64_t i = 0; i < shape_.tokens * shape_.topk; ++i) {
      weights[i] = static_cast<float>(100 + uniform(mix(step.seed, 5), i));
      ids[i] = static_cast<std::int32_t>(integer(mix(step.seed, 6), i, 2000, 3000));
    }
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_hash_routing_params p{};
    p.logits = tensors.get<void>("logits");
    p.input_ids = tensors.get<std::int32_t>("input_ids");
    p.tid2eid = tensors.get<std::int32_t>("tid2eid");
    p.weights = tensors.get<float>("weights");
    p.ids = tensors.get<std::int32_t>("ids");
    p.tokens = shape_.tokens;
    p.logits_row_stride = shape_.row_stride();
    p.experts = static_cast<std::int32_t>(shape_.experts);
    p.topk = static_cast<std::int32_t>(shape_.topk);
    p.logits_format = shape_.bf16 ? PLUMB_BF16 : PLUMB_F32;
    p.renormalize = renormalize_;
    p.routed_scaling_factor = scale_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::HashRouting inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    const HostTensor& table = tensors.at("tid2eid");
    const auto* input_ids = tensors.at("input_ids").data<std::int32_t>();
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      inputs.experts.push_back(table.row<std::int32_t>(entry_of(input_ids[token])));
    }
    inputs.topk = static_cast<std::int32_t>(shape_.topk);
    inputs.renormalize = renormalize_;
    inputs.scale = static_cast<double>(scale_);
    inputs.ids_before = tensors.at("ids_before").data<std::int32_t>();
    inputs.weights_before = tensors.at("weights_before").data<float>();
    auto weights = reference::hash_routing_weights(inputs, numerics);
    return {judge_exact(tensors.at("ids"), reference::hash_routing_ids(inputs), {}),
            judge_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill), {},
                         groups_of(shape_.tokens, 1, "token"))};
  }

  double cost() const override {
    RouterShape chosen = shape_;
    chosen.experts = shape_.topk;
    return static_cast<double>(shape_.tokens) * router_token_cost(chosen, 1, 1, device_);
  }

  double checked_factor() const override { return 2; }

  ReferenceWork reference_work() const override {
    const auto scores = static_cast<double>(shape_.tokens * shape_.topk);
    return {
        .bytes = reference_bytes(make_tensors()), .exps = scores, .logs = scores, .rsqrts = scores};
  }

 private:
  std::int64_t table_rows() const { return std::min(kTableRows, vocabulary_); }
  // Spread over the vocabulary, with the first and the last.
  std::int64_t token_id(std::int64_t entry) const {
    return table_rows() == 1 ? 0 : entry * (vocabulary_ - 1) / (table_rows() - 1);
  }
  std::int64_t entry_of(std::int32_t id) const {
    std::int64_t entry = 0;
    while (token_id(entry) != id) ++entry;
    return entry;
  }

  // Different experts in no order; with strangers, one in eight is -1, the first id behind the
  // experts or a large one.
  void fill_table(const Step& step, HostTensor& table) const {
    constexpr std::int32_t kFar = 1 << 30;
    const std::uint64_t seed = mix(step.seed, 7);
    const auto experts = static_cast<std::int32_t>(shape_.experts);
    for (std::int64_t entry = 0; entry < table_rows(); ++entry) {
      auto* row = table.row<std::int32_t>(entry);
      const std::int64_t first = integer(seed, entry, 0, shape_.experts - 1);
      const std::int64_t stride = shape_.experts > shape_.topk ? shape_.experts - 1 : 1;
      for (std::int64_t i = 0; i < shape_.topk; ++i) {
        row[i] = static_cast<std::int32_t>((first + i * (i % 2 ? stride : 1)) % shape_.experts);
        const std::uint64_t bits = random_bits(mix(seed, 1), entry * shape_.topk + i);
        if (!strangers_ || bits % 8 != 0) continue;
        row[i] = bits >> 8 & 1 ? -1 : bits >> 9 & 1 ? experts : kFar;
      }
    }
  }

  RouterShape shape_;
  device::Properties device_;
  std::int64_t vocabulary_;
  bool strangers_, renormalize_;
  float scale_;
};

}  // namespace

OpDefinition define_hash_routing() {
  OpDefinition op;
  op.name = "hash_routing";
  op.summary = "router of V4's first layers: experts by token id";
  op.parameters = router_parameters(256, 6, 1500);
  op.parameters.push_back({"vocabulary", 129280, 1, 1 << 24, "rows of the table on the device"});
  op.parameters.push_back({"strangers", 0, 0, 1, "1: some ids of the table are no experts"});
  op.make_problem = [](const Row& row,
                       const device::Properties& device) -> std::unique_ptr<Problem> {
    return std::make_unique<HashRoutingProblem>(row, device);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
