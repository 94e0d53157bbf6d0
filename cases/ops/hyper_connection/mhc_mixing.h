// SPDX-License-Identifier: Apache-2.0
//
// Shared by mhc_pre and the ops that fuse it: mixing weights (inputs), coefficients and the
// sublayer's input (outputs), and the sums of each split (scratch). The sums are judged first. The
// outputs are then judged on the sums that the device stored, and once more from the inputs, end to
// end.
#pragma once

#include <plumb/ops/hyper_connection.h>

#include <string_view>
#include <vector>

#include "cases/ops/hyper_connection/hyper_connection.h"
#include "reference/hyper_connection/mhc_pre.h"

namespace plumb::cases {

using reference::kMixes;

// Adds to an op's table the members of mhc_pre, except for the streams. fn is [24, depth].
template <class P>
void add_mixing(TablePart<P>& t, const Formula& tokens, const Formula& hidden,
                const Formula& depth) {
  const Formula splits = t.scalar("splits", &P::splits);
  t.scalar("sinkhorn_iterations", &P::sinkhorn_iterations);
  t.real("rms_eps", &P::rms_eps, negative_power_of_ten("rms_eps_exponent"),
         "added to the mean of the squares");
  t.real("norm_eps", &P::norm_eps, negative_power_of_ten("rms_eps_exponent"),
         "of the norm of the layer input");
  t.real("pre_eps", &P::pre_eps, negative_power_of_ten("hc_eps_exponent"),
         "added to the gates of pre");
  t.real("sinkhorn_eps", &P::sinkhorn_eps, negative_power_of_ten("hc_eps_exponent"),
         "added to sums of Sinkhorn");
  t.real("post_mult", &P::post_mult,
         {"post_mult", [](std::int64_t n) { return static_cast<float>(n); }, 16},
         "factor of the gates of post");
  t.input("fn", &P::fn, {kMixes, depth}, "weights of the mixes");
  t.input("scale", &P::scale, {3}, "factors of pre, post and comb");
  t.input("base", &P::base, {kMixes}, "added to each mix");
  t.input("norm_weight", &P::norm_weight, {hidden}, "of the fused norm of layer_input")
      .when(parameter("fused_norm"));
  t.output("post", &P::post, {tokens, kStreams}, "gates of the sublayer's output");
  t.strides({{"post_row_stride", &P::post_row_stride}});
  t.output("comb", &P::comb, {tokens, kStreams, kStreams}, "mixes of the streams");
  t.strides({{"comb_token_stride", &P::comb_token_stride}});
  t.output("layer_input", &P::layer_input, {tokens, hidden}, "gated sum of the streams");
  t.strides({{"layer_input_row_stride", &P::layer_input_row_stride}});
  t.scratch("partial_mixes", &P::partial_mixes, {splits, tokens, kMixes}, "products with fn");
  t.scratch("partial_square_sums", &P::partial_square_sums, {splits, tokens, 1}, "of each token");
}
// Row parameters of ops with these members.
std::vector<Parameter> mixing_parameters();

class MhcMixing {
 public:
  // depth: K of the sums. Throws BadRow.
  template <class P>
  MhcMixing(const Row& row, const P& p, std::int64_t depth) : MhcMixing(row, depth) {
    scalars_.tokens = p.tokens;
    scalars_.hidden = p.hidden;
    scalars_.splits = p.splits;
    scalars_.sinkhorn_iterations = p.sinkhorn_iterations;
    scalars_.rms_eps = p.rms_eps;
    scalars_.norm_eps = p.norm_eps;
    scalars_.pre_eps = p.pre_eps;
    scalars_.sinkhorn_eps = p.sinkhorn_eps;
    scalars_.post_mult = p.post_mult;
  }

  bool has_eps() const { return scalars_.rms_eps > 0; }
  // Scalars for a plain mhc_pre that computes the same as this op. Strides are not set.
  const plumb_mhc_pre_params& scalars() const { return scalars_; }
  StreamsFill streams_fill() const { return {norms_, has_eps()}; }
  void fill(const Step& step, TensorSet& tensors) const;

  reference::MhcPre inputs(const TensorSet& tensors, const reference::Streams& streams) const;
  // `partials`: the expected sums. `prefix`: stands in front of the names of outputs.
  Expectations expect(const Step& step, const TensorSet& tensors, const reference::MhcPre& inputs,
                      reference::MhcPrePartials partials, const reference::Numerics& numerics,
                      const plumb_numerics& declared, std::string_view prefix = "") const;
  RowMask promised(const Step& step, std::string_view tensor) const;

  double cost() const;
  double reference_cost() const;
  ReferenceWork reference_work(const TensorSet& tensors) const;

 private:
  MhcMixing(const Row& row, std::int64_t depth);
  void expect_outputs(const Step& step, const TensorSet& tensors, reference::MhcPreOutputs expected,
                      std::string_view prefix, std::string_view basis,
                      Expectations& expectations) const;

  std::int64_t depth_;
  Norms norms_;
  LogitRange logits_;
  plumb_mhc_pre_params scalars_{};
};

}  // namespace plumb::cases
