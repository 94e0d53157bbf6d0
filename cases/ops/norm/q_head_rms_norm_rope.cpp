// SPDX-License-Identifier: Apache-2.0
//
// Cases of q_head_rms_norm_rope: heads of very different norm, rotated by near and far positions.
#include "reference/norm/q_head_rms_norm_rope.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/norm/rope_inputs.h"

namespace plumb::cases {

namespace {

using reference::kHeadDim;

class QHeadProblem final : public Problem {
 public:
  explicit QHeadProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        heads_(row.integer("heads")),
        stride_(heads_ * kHeadDim + row.integer("token_gap")),
        positions_(positions_of(row)) {}

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    const std::vector<std::int64_t> shape = {tokens_, heads_, kHeadDim};
    TensorSet tensors;
    tensors.add({"q", Dtype::bf16, shape, {stride_, kHeadDim, 1}});
    add_rope_tensors(tokens_, tensors);
    tensors.add({"out", Dtype::bf16, shape, {}, Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("q"), step.live * heads_, mix(step.seed, 1), step);
    fill_rope(step, positions_, tensors);
    paint_gaps(tensors.at("q"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_q_head_rms_norm_rope_params p{};
    p.q = tensors.get<std::uint16_t>("q");
    p.positions = tensors.get<std::int64_t>("positions");
    p.cos_sin = tensors.get<float>("cos_sin");
    p.out = tensors.get<std::uint16_t>("out");
    p.tokens = tokens_;
    p.heads = heads_;
    p.q_token_stride = stride_;
    p.eps = kNormEps;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    auto expected = reference::q_head_rms_norm_rope(
        {tensors.at("q").data<std::uint16_t>(), tensors.at("cos_sin").data<float>(),
         rope_rows(tensors), tokens_, heads_, stride_, static_cast<double>(kNormEps)},
        numerics);
    const HostTensor& out = tensors.at("out");
    return {judge_floats(out, mark_structured(std::move(expected), step.fill),
                         promised_rows(step, out.spec()),
                         groups_of(tokens_ * heads_, heads_, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(tokens_ * heads_, step.live * heads_, step.dead_rows);
  }

  // A wave per head: five or six shuffles.
  double cost() const override {
    return static_cast<double>(tokens_ * heads_) * (6.0 * kHeadDim + 32 * 5.5 * kShuffleCost);
  }
  double checked_factor() const override { return 3; }  // mostly shuffles
  double reference_cost() const override {
    return 40.0 * static_cast<double>(tokens_ * heads_ * kHeadDim);
  }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), tokens_ * heads_, kHeadDim);
  }

 private:
  std::int64_t tokens_, heads_, stride_;
  Positions positions_;
};

}  // namespace

OpDefinition define_q_head_rms_norm_rope() {
  return {{"q_head_rms_norm_rope",
           "the norm of each query head, then RoPE of its last 64 dims",
           {{"tokens", 4, 0, 1 << 20, "tokens"},
            {"heads", 16, 1, 128, "heads per token"},
            {"token_gap", 0, 0, 1 << 20, "elements between tokens of q, guarded"}},
           {"positions"}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<QHeadProblem>(row);
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
