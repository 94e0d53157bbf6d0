// SPDX-License-Identifier: Apache-2.0
//
// Cases of rms_norm: strided rows, one or two roundings, with and without a weight.
#include "reference/norm/rms_norm.h"

#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace {

class RmsNormProblem final : public Problem {
 public:
  explicit RmsNormProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        hidden_(row.integer("hidden")),
        stride_(hidden_ + row.integer("row_gap")),
        weighted_(row.integer("weight") != 0),
        twice_(rounds_twice(row)) {}

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"x", Dtype::bf16, {tokens_, hidden_}, {stride_, 1}});
    if (weighted_) tensors.add({"weight", Dtype::bf16, {hidden_}, {}});
    tensors.add({"out", Dtype::bf16, {tokens_, hidden_}, {}, Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("x"), step.live, mix(step.seed, 1), step);
    if (weighted_) fill_norm_weight(tensors.at("weight"), mix(step.seed, 2), step.fill);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_rms_norm_params p{};
    p.x = tensors.get<std::uint16_t>("x");
    p.weight = tensors.get<std::uint16_t>("weight");
    p.out = tensors.get<std::uint16_t>("out");
    p.tokens = tokens_;
    p.hidden = hidden_;
    p.x_row_stride = stride_;
    p.eps = kNormEps;
    p.rounding = twice_ ? PLUMB_ROUND_TWICE : PLUMB_ROUND_ONCE;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::RmsNormInputs inputs;
    inputs.x = tensors.at("x").data<std::uint16_t>();
    inputs.weight = weighted_ ? tensors.at("weight").data<std::uint16_t>() : nullptr;
    inputs.tokens = tokens_;
    inputs.hidden = hidden_;
    inputs.x_row_stride = stride_;
    inputs.eps = static_cast<double>(kNormEps);
    inputs.rounding = twice_ ? reference::NormRounding::twice : reference::NormRounding::once;
    const auto expected = mark_structured(reference::rms_norm(inputs, numerics), step.fill);
    const HostTensor& out = tensors.at("out");
    return {judge_floats(out, expected, promised_rows(step, out.spec()),
                         groups_of(tokens_, 1, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(tokens_, step.live, step.dead_rows);
  }

  double cost() const override { return norm_cost(tokens_, hidden_); }

  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), tokens_, hidden_);
  }

 private:
  std::int64_t tokens_, hidden_, stride_;
  bool weighted_, twice_;
};

}  // namespace

OpDefinition define_rms_norm() {
  return {{"rms_norm",
           "out = x / sqrt(mean(x^2) + eps) * weight",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"hidden", 7168, 1, 1 << 20, "columns"},
            {"row_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            {"weight", 1, 0, 1, "0: no weight (a factor of 1)"}},
           {"rounding"}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<RmsNormProblem>(row);
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
