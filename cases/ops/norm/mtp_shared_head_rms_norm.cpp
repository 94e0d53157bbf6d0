// SPDX-License-Identifier: Apache-2.0
//
// Cases of mtp_shared_head_rms_norm: contiguous rows, no mask.
#include "reference/norm/mtp_shared_head_rms_norm.h"

#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace {

class MtpSharedHeadProblem final : public Problem {
 public:
  explicit MtpSharedHeadProblem(const Row& row)
      : tokens_(row.integer("tokens")), hidden_(row.integer("hidden")) {}

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"x", Dtype::bf16, {tokens_, hidden_}, {}});
    tensors.add({"weight", Dtype::bf16, {hidden_}, {}});
    tensors.add({"out", Dtype::bf16, {tokens_, hidden_}, {}, Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("x"), step.live, mix(step.seed, 1), step);
    fill_norm_weight(tensors.at("weight"), mix(step.seed, 2), step.fill);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mtp_shared_head_rms_norm_params p{};
    p.x = tensors.get<std::uint16_t>("x");
    p.weight = tensors.get<std::uint16_t>("weight");
    p.out = tensors.get<std::uint16_t>("out");
    p.tokens = tokens_;
    p.hidden = hidden_;
    p.eps = kNormEps;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const auto expected = mark_structured(
        reference::mtp_shared_head_rms_norm(tensors.at("x").data<std::uint16_t>(),
                                            tensors.at("weight").data<std::uint16_t>(), tokens_,
                                            hidden_, static_cast<double>(kNormEps), numerics),
        step.fill);
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
  std::int64_t tokens_, hidden_;
};

}  // namespace

OpDefinition define_mtp_shared_head_rms_norm() {
  return {{"mtp_shared_head_rms_norm",
           "rms_norm of the drafter's hidden states before the shared head",
           {{"tokens", 4, 0, 1 << 20, "rows"}, {"hidden", 7168, 1, 1 << 20, "columns"}},
           {}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<MtpSharedHeadProblem>(row);
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
