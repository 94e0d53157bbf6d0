// SPDX-License-Identifier: Apache-2.0
//
// Cases of hash_routing. Rows are tokens; padded ones have token id 0. On the device the table has
// the rows of a whole vocabulary, on the host a few of these, spread out.
#include "reference/router/hash_routing.h"

#include <fmt/format.h>
#include <plumb/ops/router.h>

#include <algorithm>
#include <utility>

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/router/router_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace hash_routing_cases {

constexpr std::int64_t kTableRows = 96;  // rows of the table that tokens use

using P = plumb_hash_routing_params;

const ContractChoice kStrangers{"strangers",
                                {"never", "ignored"},
                                "ids of the table that are no experts; under never it has none",
                                {{"ignored", "never", "the table has no such ids"},
                                 {"never", "ignored", "plumb's kernel of never ignores them too"}}};

Formula members(TablePart<P>& t) {
  const auto [tokens, experts, topk] = add_router(t);
  add_softplus_choices(t);
  t.choice("strangers", &P::strangers, kStrangers);
  t.input("input_ids", &P::input_ids, {tokens}, "token ids, rows of the table");
  // A case has some rows of the table, a recorded call has all of them.
  const Formula some_rows = computed("96", [](const FormulaValues&) { return kTableRows; });
  const Formula vocabulary = parameter("vocabulary");
  t.input("tid2eid", &P::tid2eid, {in_call(least(some_rows, vocabulary), vocabulary), topk},
          "experts of a token id");
  t.in_place("weights", &P::weights, {tokens, topk}, "of the experts");
  t.strides({{"weights_row_stride", &P::weights_row_stride}});
  t.in_place("ids", &P::ids, {tokens, topk}, "experts of each token");
  t.strides({{"ids_row_stride", &P::ids_row_stride}});
  return tokens;
}

class HashRoutingProblem final : public TableProblem<P> {
 public:
  HashRoutingProblem(const Row& row, const device::Properties& device)
      : TableProblem(table_of<members>(), row, device),
        shape_(row, p_),
        device_(device),
        vocabulary_(row.integer("vocabulary")) {
    shape_.exact_logits = exact_softplus_logits(softplus_rules(p_));
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_router_logits(shape_, step, tensors.at("logits"));
    fill_table(step, tensors.at("tid2eid"));
    auto* input_ids = tensors.at("input_ids").data<std::int32_t>();
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      const std::int64_t entry = integer(mix(step.seed, 4), token, 0, table_rows() - 1);
      input_ids[token] = static_cast<std::int32_t>(token < step.live ? token_id(entry) : 0);
    }
    HostTensor& weights = tensors.at("weights_before");
    HostTensor& ids = tensors.at("ids_before");
    for (std::int64_t i = 0; i < shape_.tokens * shape_.topk; ++i) {
      const std::int64_t row = i / shape_.topk, column = i % shape_.topk;
      weights.row<float>(row)[column] = static_cast<float>(100 + uniform(mix(step.seed, 5), i));
      ids.row<std::int32_t>(row)[column] =
          static_cast<std::int32_t>(integer(mix(step.seed, 6), i, 2000, 3000));
    }
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    reference::HashRouting inputs;
    inputs.logits = router_logits(shape_, tensors.at("logits"));
    const HostTensor& table = tensors.at("tid2eid");
    const auto* input_ids = tensors.at("input_ids").data<std::int32_t>();
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      inputs.experts.push_back(table.row<std::int32_t>(entry_of(input_ids[token], table)));
    }
    inputs.topk = static_cast<std::int32_t>(p_.topk);
    inputs.renormalize = p_.renormalize != 0;
    inputs.scale = static_cast<double>(p_.routed_scaling_factor);
    inputs.rules = softplus_rules(p_);
    const auto ids_before = packed<std::int32_t>(tensors.at("ids_before"));
    const auto weights_before = packed<float>(tensors.at("weights_before"));
    inputs.ids_before = ids_before.data();
    inputs.weights_before = weights_before.data();
    auto weights = reference::hash_routing_weights(inputs, numerics);
    return {expect_exact(tensors.at("ids"), reference::hash_routing_ids(inputs), {}),
            expect_floats(tensors.at("weights"), mark_structured(std::move(weights), step.fill), {},
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
  void place(TensorSpec& spec) const override {
    if (spec.name != "tid2eid") return;
    spec.sparse = true;
    for (std::int64_t i = 0; i < table_rows(); ++i) spec.placement.push_back(token_id(i));
  }

  std::int64_t table_rows() const { return std::min(kTableRows, vocabulary_); }
  // Token id of a host row of the table. Ids are spread over the vocabulary, from first to last.
  std::int64_t token_id(std::int64_t entry) const {
    return table_rows() == 1 ? 0 : entry * (vocabulary_ - 1) / (table_rows() - 1);
  }
  // Host row of a token id. Throws BadRow for a token id without a row.
  static std::int64_t entry_of(std::int32_t id, const HostTensor& table) {
    const std::vector<std::int64_t>& existing = table.spec().placement;
    if (existing.empty() && id >= 0 && id < table.rows()) return id;
    const auto found = std::lower_bound(existing.begin(), existing.end(), id);
    if (found != existing.end() && *found == id) return found - existing.begin();
    throw BadRow(fmt::format("a token has the id {}, and tid2eid has no such row", id));
  }

  // Rows of different experts in no order. If `strangers` allows ids that are no experts, one id in
  // eight is -1, the number of experts (too large by one), or 2^30.
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
        if (p_.strangers == PLUMB_STRANGERS_NEVER || bits % 8 != 0) continue;
        row[i] = bits >> 8 & 1 ? -1 : bits >> 9 & 1 ? experts : kFar;
      }
    }
  }

  RouterShape shape_;
  device::Properties device_;
  std::int64_t vocabulary_;
};

}  // namespace hash_routing_cases

OpDefinition define_hash_routing() {
  using namespace hash_routing_cases;
  std::vector<Parameter> parameters = router_parameters(256, 6, 1500);
  parameters.push_back({"vocabulary", 129280, 1, 1 << 24, "rows of the table on the device"});
  return {{"hash_routing",
           "router of V4's first layers: experts by token id",
           std::move(parameters),
           {kRouterLogits},
           {kSoftplus, kSoftplusSmall, kNanScore, kZeroSum, kStrangers}},
          make_problem_of<HashRoutingProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
