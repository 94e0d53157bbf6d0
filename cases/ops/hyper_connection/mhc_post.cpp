// SPDX-License-Identifier: Apache-2.0
//
// Cases of mhc_post. Exact fill: small integers whose sums bf16 holds. Adversarial fill: comb is a
// cyclic permutation in which one entry is set to 1e-6, and post is 0 or 2.
#include "reference/hyper_connection/mhc_post.h"

#include <plumb/ops/hyper_connection.h>

#include <utility>

#include "cases/ops/hyper_connection/hyper_connection.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace mhc_post_cases {

constexpr std::int64_t kMostInteger = 4;  // 5 * 4 * 4 = 80 is exact in bf16
constexpr std::int64_t kRowsPerGroup = 64;

enum MhcPostSalt : std::uint64_t { kX = 101, kPost, kComb };

using P = plumb_mhc_post_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  t.input("x", &P::x, {tokens, hidden}, "the sublayer's output");
  add_residual(t, tokens, hidden);
  t.input("post", &P::post, {tokens, kStreams}, "gates of x");
  t.input("comb", &P::comb, {tokens, kStreams, kStreams}, "mixes of the streams");
  t.output("out", &P::out, {tokens, kStreams, hidden}, "the streams after the sublayer");
  t.strides({{"out_token_stride", &P::out_token_stride}, {"out_slot_stride", &P::out_slot_stride}});
  return tokens;
}

class MhcPostProblem final : public TableProblem<P> {
 public:
  MhcPostProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), norms_(norms_of(row)) {
    check_trivial_tokens(row);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& x = tensors.at("x");
    HostTensor& post = tensors.at("post");
    HostTensor& comb = tensors.at("comb");
    fill_streams(step, {norms_, true}, tensors.at("residual"));
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

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    reference::MhcPost inputs;
    inputs.x = tensors.at("x").data<std::uint16_t>();
    inputs.residual = residual_of(p_, tensors.at("residual"));
    inputs.post = tensors.at("post").data<float>();
    inputs.comb = tensors.at("comb").data<float>();
    reference::Estimate expected = reference::mhc_post(inputs, numerics);
    adapt_linear_sum(step, expected);
    const HostTensor& out = tensors.at("out");
    return {expect_floats(out, std::move(expected), promised_rows(step, out.spec()),
                          groups_of(out.rows(), kRowsPerGroup, "rows"))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const bool per_stream = spec.name != "x" && spec.name != "post";
    return promised_tokens(step, true, p_.tokens, per_stream ? kStreams : 1);
  }

  double cost() const override {
    return static_cast<double>(p_.tokens * p_.hidden * kStreams * (kStreams + 1));
  }
  double checked_factor() const override { return 20; }

  ReferenceWork reference_work() const override {
    const auto columns = static_cast<double>(p_.tokens * p_.hidden * kStreams);
    return {.bytes = reference_bytes(make_tensors()), .multiply_adds = columns * (kStreams + 1)};
  }

 private:
  Norms norms_;
};

}  // namespace mhc_post_cases

OpDefinition define_mhc_post() {
  using namespace mhc_post_cases;
  return {{"mhc_post",
           "the sublayer's output and the mixed residual streams",
           stream_parameters(),
           {kNormsWord}},
          make_problem_of<MhcPostProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
