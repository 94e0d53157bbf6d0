// SPDX-License-Identifier: Apache-2.0
//
// Cases of hc_head, in both variants.
#include "reference/hyper_connection/hc_head.h"

#include "cases/ops/hyper_connection/hyper_connection.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kStreams = reference::kStreams;
constexpr std::int64_t kRowsPerGroup = 64;

class HcHeadProblem : public Problem {
 public:
  explicit HcHeadProblem(const Row& row)
      : layout_(row),
        norms_(norms_of(row)),
        logits_(logits_of(row)),
        rms_eps_(negative_power_of_ten(row, "rms_eps_exponent")),
        hc_eps_(negative_power_of_ten(row, "hc_eps_exponent")),
        rounding_(row.integer("round_twice") == 1 ? PLUMB_ROUND_TWICE : PLUMB_ROUND_ONCE) {
    check_trivial_tokens(row, layout_.tokens);
  }

  std::int64_t capacity() const override { return layout_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec("hidden_states"));
    tensors.add({"fn", Dtype::f32, {kStreams, kStreams * layout_.hidden}, {}, Role::input, false});
    tensors.add({"scale", Dtype::f32, {1}, {}, Role::input, false});
    tensors.add({"base", Dtype::f32, {kStreams}, {}, Role::input, false});
    tensors.add({"out", Dtype::bf16, {layout_.tokens, layout_.hidden}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(layout_, step, {norms_, rms_eps_ > 0}, tensors.at("hidden_states"));
    fill_mixing(step, logits_, tensors.at("fn"), tensors.at("scale"), tensors.at("base"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_hc_head_params params{};
    params.hidden_states = tensors.get<std::uint16_t>("hidden_states");
    params.fn = tensors.get<float>("fn");
    params.scale = tensors.get<float>("scale");
    params.base = tensors.get<float>("base");
    params.out = tensors.get<std::uint16_t>("out");
    params.tokens = layout_.tokens;
    params.hidden = layout_.hidden;
    params.hidden_token_stride = layout_.token_stride();
    params.hidden_slot_stride = layout_.slot_stride();
    params.rms_eps = rms_eps_;
    params.hc_eps = hc_eps_;
    params.rounding = rounding_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::HcHead inputs;
    inputs.hidden_states = layout_.view(tensors.at("hidden_states"));
    inputs.fn = tensors.at("fn").data<float>();
    inputs.scale = tensors.at("scale").data<float>();
    inputs.base = tensors.at("base").data<float>();
    inputs.rms_eps = rms_eps_;
    inputs.hc_eps = hc_eps_;
    inputs.round_normalised = rounding_ == PLUMB_ROUND_TWICE;
    reference::Estimate expected = reference::hc_head(inputs, numerics);
    adapt_gated_sum(step, expected);
    const HostTensor& out = tensors.at("out");
    return {judge_floats(out, expected, promised_rows(step, out.spec()),
                         groups_of(out.rows(), kRowsPerGroup, "tokens"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const std::int64_t rows = spec.name == "hidden_states" ? kStreams : 1;
    return promised_tokens(step, rms_eps_ > 0, layout_.tokens, rows);
  }

  double reference_cost() const override {
    return 100.0 * static_cast<double>(layout_.tokens * layout_.hidden);
  }
  double cost() const override {
    const auto columns = static_cast<double>(kStreams * layout_.hidden);
    const double joining = (kStreams + 1) * (5 * kShuffleCost + kBarrierCost);
    return static_cast<double>(layout_.tokens) *
           (columns * (kStreams + 2) + token_threads(layout_.hidden) * joining);
  }

  // The square of each column, four mixes and the gated sum.
  ReferenceWork reference_work() const override {
    const auto tokens = static_cast<double>(layout_.tokens);
    const auto columns = static_cast<double>(kStreams * layout_.hidden);
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = tokens * columns * (kStreams + 2),
            .exps = tokens * kStreams,
            .rsqrts = tokens};
  }

 private:
  StreamsLayout layout_;
  Norms norms_;
  LogitRange logits_;
  float rms_eps_, hc_eps_;
  plumb_rounding rounding_;
};

}  // namespace

OpDefinition define_hc_head() {
  OpDefinition op;
  op.name = "hc_head";
  op.summary = "gated sum of the four streams before the LM head";
  op.parameters = stream_parameters();
  op.parameters.insert(op.parameters.end(),
                       {{"rms_eps_exponent", 6, 0, 30, "rms_eps is 10^-n; 0: none"},
                        {"hc_eps_exponent", 6, 0, 30, "hc_eps is 10^-n; 0: none"},
                        {"round_twice", 0, 0, 1, "1: x * r is rounded to bf16 before fn"}});
  op.word_parameters = {"norms", "logits"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<HcHeadProblem>(row);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
