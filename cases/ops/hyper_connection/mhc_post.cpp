// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_post. Exact fill: small integers whose sums bf16 holds. Adversarial: comb is a
// cyclic permutation with one large entry off it, post is 0 or 2.
#include "reference/hyper_connection/mhc_post.h"

#include "cases/ops/hyper_connection/hyper_connection.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kStreams = reference::kStreams;
constexpr std::int64_t kMostInteger = 4;  // 5 * 4 * 4 = 80 is exact in bf16
constexpr std::int64_t kRowsPerGroup = 64;

enum MhcPostSalt : std::uint64_t { kX = 101, kPost, kComb };

class MhcPostProblem : public Problem {
 public:
  explicit MhcPostProblem(const Row& row) : layout_(row), norms_(norms_of(row)) {
    check_trivial_tokens(row, layout_.tokens);
  }

  std::int64_t capacity() const override { return layout_.tokens; }

  TensorSet make_tensors() const override {
    const std::int64_t tokens = layout_.tokens, hidden = layout_.hidden;
    TensorSet tensors;
    tensors.add({"x", Dtype::bf16, {tokens, hidden}, {}, Role::input, false});
    tensors.add(layout_.spec("residual"));
    tensors.add({"post", Dtype::f32, {tokens, kStreams}, {}, Role::input, false});
    tensors.add({"comb", Dtype::f32, {tokens, kStreams, kStreams}, {}, Role::input, false});
    tensors.add({"out", Dtype::bf16, {tokens, kStreams, hidden}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& x = tensors.at("x");
    HostTensor& post = tensors.at("post");
    HostTensor& comb = tensors.at("comb");
    fill_streams(layout_, step, {norms_, true}, tensors.at("residual"));
    if (step.fill == Fill::exact) {
      fill_integers(tensors.at("residual"), 0, step.live * kStreams, step.seed, kMostInteger);
      fill_integers(x, 0, step.live, mix(step.seed, kX), kMostInteger);
      fill_integers(post, 0, step.live, mix(step.seed, kPost), kMostInteger);
      fill_integers(comb, 0, step.live * kStreams, mix(step.seed, kComb), kMostInteger);
    } else {
      fill_real(x, 0, step.live, mix(step.seed, kX), {});
      for (std::int64_t token = 0; token < step.live; ++token) {
        fill_coefficients(step, token, post.row<float>(token), comb.row<float>(token * kStreams));
      }
    }
    fill_dead(x, step.live, x.rows(), step.dead_rows);
    fill_dead(post, step.live, post.rows(), step.dead_rows);
    fill_dead(comb, step.live * kStreams, comb.rows(), step.dead_rows);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mhc_post_params params{};
    params.x = tensors.get<std::uint16_t>("x");
    params.residual = tensors.get<std::uint16_t>("residual");
    params.post = tensors.get<float>("post");
    params.comb = tensors.get<float>("comb");
    params.out = tensors.get<std::uint16_t>("out");
    params.tokens = layout_.tokens;
    params.hidden = layout_.hidden;
    params.residual_token_stride = layout_.token_stride();
    params.residual_slot_stride = layout_.slot_stride();
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    reference::MhcPost inputs;
    inputs.x = tensors.at("x").data<std::uint16_t>();
    inputs.residual = layout_.view(tensors.at("residual"));
    inputs.post = tensors.at("post").data<float>();
    inputs.comb = tensors.at("comb").data<float>();
    reference::Estimate expected = reference::mhc_post(inputs, numerics);
    adapt_linear_sum(step, expected);
    const HostTensor& out = tensors.at("out");
    return {judge_floats(out, expected, promised_rows(step, out.spec()),
                         groups_of(out.rows(), kRowsPerGroup, "rows"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const bool per_stream = spec.name != "x" && spec.name != "post";
    return promised_tokens(step, true, layout_.tokens, per_stream ? kStreams : 1);
  }

  double cost() const override {
    return static_cast<double>(layout_.tokens * layout_.hidden * kStreams * (kStreams + 1));
  }
  double checked_factor() const override { return 20; }

  ReferenceWork reference_work() const override {
    const auto columns = static_cast<double>(layout_.tokens * layout_.hidden * kStreams);
    return {.bytes = reference_bytes(make_tensors()), .multiply_adds = columns * (kStreams + 1)};
  }

 private:
  StreamsLayout layout_;
  Norms norms_;
};

}  // namespace

OpDefinition define_mhc_post() {
  OpDefinition op;
  op.name = "mhc_post";
  op.summary = "the sublayer's output and the mixed residual streams";
  op.parameters = stream_parameters();
  op.word_parameters = {"norms"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<MhcPostProblem>(row);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
