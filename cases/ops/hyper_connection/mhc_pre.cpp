// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_pre: four streams as they are stored (cases/ops/hyper_connection/mhc_mixing.h has
// the rest).
#include "reference/hyper_connection/mhc_pre.h"

#include "cases/ops/hyper_connection/mhc_mixing.h"

namespace plumb::cases {

namespace {

class MhcPreProblem : public Problem {
 public:
  explicit MhcPreProblem(const Row& row)
      : layout_(row), mixing_(row, reference::kStreams * layout_.hidden) {}

  std::int64_t capacity() const override { return layout_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec("residual"));
    mixing_.add_inputs(tensors);
    mixing_.add_outputs(tensors);
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_streams(layout_, step, mixing_.streams_fill(), tensors.at("residual"));
    mixing_.fill(step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mhc_pre_params params{};
    mixing_.set(params, tensors, stream);
    params.residual = tensors.get<std::uint16_t>("residual");
    params.residual_token_stride = layout_.token_stride();
    params.residual_slot_stride = layout_.slot_stride();
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared) const override {
    const auto inputs = mixing_.inputs(tensors, layout_.view(tensors.at("residual")));
    return mixing_.judge(step, tensors, inputs, reference::mhc_pre_partials(inputs, numerics),
                         numerics, declared);
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return mixing_.promised(step, spec.name);
  }

  double cost() const override { return mixing_.cost(); }
  double reference_cost() const override { return mixing_.reference_cost(); }
  double checked_factor() const override { return 14; }

  ReferenceWork reference_work() const override { return mixing_.reference_work(make_tensors()); }

 private:
  StreamsLayout layout_;
  MhcMixing mixing_;
};

}  // namespace

OpDefinition define_mhc_pre() {
  OpDefinition op;
  op.name = "mhc_pre";
  op.summary = "hyper-connection mixing before a sublayer: post, comb and the sublayer's input";
  op.parameters = stream_parameters();
  const std::vector<Parameter> mixing = MhcMixing::parameters();
  op.parameters.insert(op.parameters.end(), mixing.begin(), mixing.end());
  op.word_parameters = MhcMixing::word_parameters();
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<MhcPreProblem>(row);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
