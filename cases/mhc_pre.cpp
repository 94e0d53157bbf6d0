// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_pre. The per-split sums are judged first; the outputs are then judged on the sums
// that the device stored, and once more from the inputs, end to end.
#include "reference/mhc_pre.h"

#include <cmath>
#include <utility>

#include "cases/hyper_connection.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMixes = reference::kMixes, kStreams = reference::kStreams;
constexpr std::int64_t kRowsPerTile = 64;

class MhcPreProblem : public Problem {
 public:
  explicit MhcPreProblem(const Row& row)
      : layout_(row),
        norms_(norms_of(row)),
        logits_(logits_of(row)),
        splits_(static_cast<std::int32_t>(row.integer("splits"))),
        iterations_(static_cast<std::int32_t>(row.integer("sinkhorn_iterations"))),
        has_norm_(row.integer("fused_norm") == 1),
        rms_eps_(negative_power_of_ten(row, "rms_eps_exponent")),
        hc_eps_(negative_power_of_ten(row, "hc_eps_exponent")),
        post_mult_(static_cast<float>(row.integer("post_mult"))) {
    check_trivial_tokens(row, layout_.tokens);
    if (hc_eps_ == 0 && logits_ == Logits::huge) {
      throw BadRow(row.where + ": logits = \"huge\" without eps divides 0 by 0");
    }
  }

  std::int64_t capacity() const override { return layout_.tokens; }

  TensorSet make_tensors() const override {
    const std::int64_t tokens = layout_.tokens;
    TensorSet tensors;
    tensors.add(layout_.spec("residual"));
    tensors.add({"fn", Dtype::f32, {kMixes, kStreams * layout_.hidden}, {}, Role::input, false});
    tensors.add({"scale", Dtype::f32, {3}, {}, Role::input, false});
    tensors.add({"base", Dtype::f32, {kMixes}, {}, Role::input, false});
    if (has_norm_) {
      tensors.add({"norm_weight", Dtype::bf16, {layout_.hidden}, {}, Role::input, false});
    }
    tensors.add({"post", Dtype::f32, {tokens, kStreams}, {}, Role::output, false});
    tensors.add({"comb", Dtype::f32, {tokens, kStreams, kStreams}, {}, Role::output, false});
    tensors.add({"layer_input", Dtype::bf16, {tokens, layout_.hidden}, {}, Role::output, false});
    tensors.add({"partial_mixes", Dtype::f32, {splits_, tokens, kMixes}, {}, Role::scratch, false});
    tensors.add(
        {"partial_square_sums", Dtype::f32, {splits_, tokens, 1}, {}, Role::scratch, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(layout_, step, {norms_, rms_eps_ > 0}, tensors.at("residual"));
    fill_mixing(step, logits_, tensors.at("fn"), tensors.at("scale"), tensors.at("base"));
    if (has_norm_) fill_norm_weight(step, tensors.at("norm_weight"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mhc_pre_params params{};
    params.residual = tensors.get<std::uint16_t>("residual");
    params.fn = tensors.get<float>("fn");
    params.scale = tensors.get<float>("scale");
    params.base = tensors.get<float>("base");
    params.norm_weight = tensors.get<std::uint16_t>("norm_weight");
    params.post = tensors.get<float>("post");
    params.comb = tensors.get<float>("comb");
    params.layer_input = tensors.get<std::uint16_t>("layer_input");
    params.partial_mixes = tensors.get<float>("partial_mixes");
    params.partial_square_sums = tensors.get<float>("partial_square_sums");
    params.tokens = layout_.tokens;
    params.hidden = layout_.hidden;
    params.residual_token_stride = layout_.token_stride();
    params.residual_slot_stride = layout_.slot_stride();
    params.splits = splits_;
    params.sinkhorn_iterations = iterations_;
    params.rms_eps = params.norm_eps = rms_eps_;
    params.pre_eps = params.sinkhorn_eps = hc_eps_;
    params.post_mult = post_mult_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared) const override {
    const reference::MhcPre inputs = reference_inputs(tensors);
    reference::MhcPrePartials partials = reference::mhc_pre_partials(inputs, numerics);
    adapt_linear_sum(step, partials.mixes);
    adapt_linear_sum(step, partials.square_sums);
    std::vector<TensorReport> reports;
    if (declared.stores_partials != 0) {
      const HostTensor& mixes = tensors.at("partial_mixes");
      const HostTensor& square_sums = tensors.at("partial_square_sums");
      const auto tiles = groups_of(mixes.rows(), kRowsPerTile, "rows");
      reports.push_back(
          judge_floats(mixes, partials.mixes, promised(step, "partial_mixes"), tiles));
      reports.push_back(judge_floats(square_sums, partials.square_sums,
                                     promised(step, "partial_square_sums"), tiles));
      judge_outputs(
          step, tensors,
          reference::mhc_pre_outputs(
              inputs,
              reference::stored_partials(inputs, mixes.data<float>(), square_sums.data<float>()),
              numerics),
          "", reports);
    }
    judge_outputs(step, tensors, reference::mhc_pre_outputs(inputs, partials, numerics),
                  declared.stores_partials != 0 ? " (end to end)" : "", reports);
    return reports;
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return promised(step, spec.name);
  }

  double cost() const override {
    constexpr double kTileTokens = 64, kTileThreads = 128, kChunk = 64, kIteration = 150;
    const auto tokens = static_cast<double>(layout_.tokens);
    const double columns = static_cast<double>(kStreams * layout_.hidden);
    const double tiles = std::ceil(tokens / kTileTokens);
    const double chunks = std::ceil(columns / kChunk);
    const double staging = chunks * kTileThreads * 2 * kBarrierCost + columns * kMixes;
    const double joining = splits_ * kTileThreads * (kMixes + 1) * kShuffleCost;
    const double products = columns * (kMixes / 3.0 + 2) + kIteration * iterations_;
    const double outputs = token_threads(layout_.hidden) * (5 * kShuffleCost + 3 * kBarrierCost);
    return tiles * (staging + joining) + tokens * (products + outputs);
  }
  // Sinkhorn again and again with random roundings, and 24 columns in several orders.
  double reference_cost() const override {
    const double per_token = 70000 + 400.0 * static_cast<double>(layout_.hidden);
    return static_cast<double>(layout_.tokens) * per_token;
  }
  double checked_factor() const override { return 14; }

  // 24 mixes and the square of each column, then the gated sum; 20 iterations on 16 numbers.
  ReferenceWork reference_work() const override {
    const auto tokens = static_cast<double>(layout_.tokens);
    const auto columns = static_cast<double>(kStreams * layout_.hidden);
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = tokens * columns * (kMixes + 2),
            .exps = tokens * kMixes,
            .rsqrts = tokens};
  }

 private:
  RowMask promised(const Step& step, std::string_view tensor) const {
    const bool partial = tensor.starts_with("partial_");
    const std::int64_t rows = tensor == "comb" || tensor == "residual" ? kStreams : 1;
    return promised_tokens(step, rms_eps_ > 0, layout_.tokens, rows, partial ? splits_ : 1);
  }

  void judge_outputs(const Step& step, const TensorSet& tensors, reference::MhcPreOutputs expected,
                     const std::string& basis, std::vector<TensorReport>& reports) const {
    const auto judge_one = [&](const std::string& name, const reference::Estimate& estimate) {
      const HostTensor& got = tensors.at(name);
      const std::int64_t rows_per_group = kRowsPerTile * (name == "comb" ? kStreams : 1);
      reports.push_back(judge_floats(got, estimate, promised(step, name),
                                     groups_of(got.rows(), rows_per_group, "tile")));
      reports.back().tensor = name + basis;
    };
    adapt_coefficients(step, expected.post);
    adapt_coefficients(step, expected.comb);
    adapt_gated_sum(step, expected.layer_input);
    // Equal logits stay equal: all entries of comb round alike.
    if (logits_ == Logits::equal) expected.comb.structured = true;
    judge_one("post", expected.post);
    judge_one("comb", expected.comb);
    judge_one("layer_input", expected.layer_input);
  }

  reference::MhcPre reference_inputs(const TensorSet& tensors) const {
    reference::MhcPre inputs;
    inputs.residual = layout_.view(tensors.at("residual"));
    inputs.fn = tensors.at("fn").data<float>();
    inputs.scale = tensors.at("scale").data<float>();
    inputs.base = tensors.at("base").data<float>();
    if (has_norm_) {
      inputs.norm = {tensors.at("norm_weight").data<std::uint16_t>(), rms_eps_};
    }
    inputs.splits = splits_;
    inputs.sinkhorn_iterations = iterations_;
    inputs.rms_eps = rms_eps_;
    inputs.pre_eps = inputs.sinkhorn_eps = hc_eps_;
    inputs.post_mult = post_mult_;
    return inputs;
  }

  StreamsLayout layout_;
  Norms norms_;
  Logits logits_;
  std::int32_t splits_, iterations_;
  bool has_norm_;
  float rms_eps_, hc_eps_, post_mult_;
};

}  // namespace

OpDefinition define_mhc_pre() {
  OpDefinition op;
  op.name = "mhc_pre";
  op.summary = "hyper-connection mixing before a sublayer: post, comb and the sublayer's input";
  op.parameters = stream_parameters();
  op.parameters.insert(
      op.parameters.end(),
      {{"splits", 1, 1, 64, "parts of K = 4 * hidden"},
       {"sinkhorn_iterations", 20, 1, 1000, "normalisations of the columns"},
       {"fused_norm", 0, 0, 1, "1: layer_input is normalised by the same call"},
       {"rms_eps_exponent", 6, 0, 30, "rms_eps and norm_eps are 10^-n; 0: none"},
       {"hc_eps_exponent", 6, 0, 30, "pre_eps and sinkhorn_eps are 10^-n; 0: none"},
       {"post_mult", 2, 1, 16, "factor of the post gates"}});
  op.word_parameters = {"norms", "logits"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<MhcPreProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
