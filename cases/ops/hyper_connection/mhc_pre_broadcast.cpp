// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_pre_broadcast: one stream that stands for four, which are written out bit by bit.
#include "reference/hyper_connection/mhc_pre_broadcast.h"

#include <algorithm>

#include "cases/ops/hyper_connection/mhc_mixing.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kStreams = reference::kStreams;

class MhcBroadcastProblem : public Problem {
 public:
  explicit MhcBroadcastProblem(const Row& row)
      : layout_(StreamsLayout::one_stream(row)), mixing_(row, layout_.hidden) {}

  std::int64_t capacity() const override { return layout_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec("residual"));
    mixing_.add_inputs(tensors);
    tensors.add({"residual_out",
                 Dtype::bf16,
                 {layout_.tokens, kStreams, layout_.hidden},
                 {},
                 Role::output});
    mixing_.add_outputs(tensors);
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(layout_, step, mixing_.streams_fill(), tensors.at("residual"));
    mixing_.fill(step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mhc_pre_broadcast_params params{};
    mixing_.set(params, tensors, stream);
    params.residual = tensors.get<std::uint16_t>("residual");
    params.residual_out = tensors.get<std::uint16_t>("residual_out");
    params.residual_token_stride = layout_.token_stride();
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared) const override {
    const HostTensor& residual = tensors.at("residual");
    const auto inputs =
        mixing_.inputs(tensors, reference::broadcast(residual.data<std::uint16_t>(), layout_.tokens,
                                                     layout_.hidden, layout_.token_stride()));
    std::vector<TensorReport> reports = {judge_bits(
        tensors.at("residual_out"), four_times(residual), {}, "differs from the residual")};
    for (TensorReport& report :
         mixing_.judge(step, tensors, inputs, reference::mhc_pre_partials(inputs, numerics),
                       numerics, declared)) {
      reports.push_back(std::move(report));
    }
    return reports;
  }

  // A copy is promised whatever it copies.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return spec.name == "residual_out" ? RowMask{} : mixing_.promised(step, spec.name);
  }

  double cost() const override {
    return mixing_.cost() + 4 * static_cast<double>(layout_.tokens * layout_.hidden);
  }
  double reference_cost() const override { return mixing_.reference_cost(); }
  ReferenceWork reference_work() const override { return mixing_.reference_work(make_tensors()); }
  double checked_factor() const override { return 14; }

 private:
  HostTensor four_times(const HostTensor& residual) const {
    HostTensor out({"residual_out", Dtype::bf16, {layout_.tokens, kStreams, layout_.hidden}, {}});
    for (std::int64_t row = 0; row < out.rows(); ++row) {
      std::copy_n(residual.row<std::uint16_t>(row / kStreams), layout_.hidden,
                  out.row<std::uint16_t>(row));
    }
    return out;
  }

  StreamsLayout layout_;
  MhcMixing mixing_;
};

}  // namespace

OpDefinition define_mhc_pre_broadcast() {
  OpDefinition op;
  op.name = "mhc_pre_broadcast";
  op.summary = "mhc_pre of the first layer: one stream that stands for four";
  op.parameters = stream_parameters();
  const std::vector<Parameter> mixing = MhcMixing::parameters();
  op.parameters.insert(op.parameters.end(), mixing.begin(), mixing.end());
  op.word_parameters = MhcMixing::word_parameters();
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<MhcBroadcastProblem>(row);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
