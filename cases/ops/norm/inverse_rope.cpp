// SPDX-License-Identifier: Apache-2.0
//
// Cases of inverse_rope: in place; what is not rotated keeps its bits, in padded rows too.
#include "reference/norm/inverse_rope.h"

#include "cases/ops/norm/norm_inputs.h"
#include "cases/ops/norm/rope_inputs.h"

namespace plumb::cases {

namespace {

using reference::kHeadDim, reference::kNopeDim;

class InverseRopeProblem final : public Problem {
 public:
  explicit InverseRopeProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        heads_(row.integer("heads")),
        stride_(heads_ * kHeadDim + row.integer("token_gap")),
        positions_(positions_of(row)) {}

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    const std::vector<std::int64_t> shape = {tokens_, heads_, kHeadDim};
    const std::vector<std::int64_t> strides = {stride_, kHeadDim, 1};
    TensorSet tensors;
    tensors.add({"x_before", Dtype::bf16, shape, strides});
    add_rope_tensors(tokens_, tensors);
    tensors.add({"x", Dtype::bf16, shape, strides, Role::output, false, {}, "x_before"});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("x_before"), step.live * heads_, mix(step.seed, 1), step);
    fill_rope(step, positions_, tensors);
    paint_gaps(tensors.at("x_before"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_inverse_rope_params p{};
    p.x = tensors.get<std::uint16_t>("x");
    p.positions = tensors.get<std::int64_t>("positions");
    p.cos_sin = tensors.get<float>("cos_sin");
    p.tokens = tokens_;
    p.heads = heads_;
    p.x_token_stride = stride_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const HostTensor& before = tensors.at("x_before");
    const HostTensor& x = tensors.at("x");
    const auto expected = mark_structured(
        reference::inverse_rope({before.data<std::uint16_t>(), tensors.at("cos_sin").data<float>(),
                                 rope_rows(tensors), tokens_, heads_, stride_}),
        step.fill);
    return {
        judge_bits(columns_of(x, "x (not rotated)", 0, kNopeDim),
                   columns_of(before, "x (not rotated)", 0, kNopeDim), {}, "changed"),
        judge_floats(columns_of(x, "x (rotated)", kNopeDim, kHeadDim), expected,
                     promised_rows(step, x.spec()), groups_of(tokens_ * heads_, heads_, "token"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(tokens_ * heads_, step.live * heads_, step.dead_rows);
  }

  double cost() const override {
    constexpr double kThreads = 256;
    return static_cast<double>(tokens_) * (4.0 * 32 * static_cast<double>(heads_) + 7 * kThreads);
  }
  double checked_factor() const override { return 14; }

 private:
  std::int64_t tokens_, heads_, stride_;
  Positions positions_;
};

}  // namespace

OpDefinition define_inverse_rope() {
  return {{"inverse_rope",
           "in place: the last 64 of each head's 512 dims rotated back",
           {{"tokens", 4, 0, 1 << 20, "tokens"},
            {"heads", 16, 1, 128, "heads per token"},
            {"token_gap", 0, 0, 1 << 20, "elements between tokens, guarded"}},
           {"positions"}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<InverseRopeProblem>(row);
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
