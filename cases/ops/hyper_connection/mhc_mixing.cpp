// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/hyper_connection/mhc_mixing.h"

#include <cmath>
#include <utility>

namespace plumb::cases {

namespace {

constexpr std::int64_t kRowsPerTile = 64;

}  // namespace

std::vector<Parameter> mixing_parameters() {
  std::vector<Parameter> parameters = stream_parameters();
  parameters.insert(
      parameters.end(),
      {{"splits", 1, 1, 64, "parts of K"},
       {"sinkhorn_iterations", 20, 1, 1000, "normalisations of the columns"},
       {"fused_norm", 0, 0, 1, "1: layer_input is normalised by the same call"},
       {"rms_eps_exponent", 6, 0, 30, "rms_eps and norm_eps are 10^-n; 0: none", true},
       {"hc_eps_exponent", 6, 0, 30, "pre_eps and sinkhorn_eps are 10^-n; 0: none", true},
       {"post_mult", 2, 1, 16, "factor of the post gates", true}});
  return parameters;
}

MhcMixing::MhcMixing(const Row& row, std::int64_t depth)
    : depth_(depth), norms_(norms_of(row)), logits_(logits_of(row)) {
  check_trivial_tokens(row);
  if (row.integer("hc_eps_exponent") == 0 && logits_ == LogitRange::huge) {
    throw BadRow(row.where + ": logits = \"huge\" without eps divides 0 by 0");
  }
}

void MhcMixing::fill(const Step& step, TensorSet& tensors) const {
  fill_mixing(step, logits_, tensors.at("fn"), tensors.at("scale"), tensors.at("base"));
  if (tensors.contains("norm_weight")) fill_norm_weight(step, tensors.at("norm_weight"));
}

reference::MhcPre MhcMixing::inputs(const TensorSet& tensors,
                                    const reference::Streams& streams) const {
  reference::MhcPre inputs;
  inputs.residual = streams;
  inputs.fn = tensors.at("fn").data<float>();
  inputs.summed_weights = depth_ == scalars_.hidden;
  inputs.scale = tensors.at("scale").data<float>();
  inputs.base = tensors.at("base").data<float>();
  if (tensors.contains("norm_weight")) {
    inputs.norm = {tensors.at("norm_weight").data<std::uint16_t>(), scalars_.norm_eps};
  }
  inputs.splits = static_cast<int>(scalars_.splits);
  inputs.sinkhorn_iterations = scalars_.sinkhorn_iterations;
  inputs.rms_eps = scalars_.rms_eps;
  inputs.pre_eps = scalars_.pre_eps;
  inputs.sinkhorn_eps = scalars_.sinkhorn_eps;
  inputs.post_mult = scalars_.post_mult;
  return inputs;
}

Expectations MhcMixing::expect(const Step& step, const TensorSet& tensors,
                               const reference::MhcPre& inputs, reference::MhcPrePartials partials,
                               const reference::Numerics& numerics, const plumb_numerics& declared,
                               std::string_view prefix) const {
  adapt_linear_sum(step, partials.square_sums);
  if (!inputs.scaled_streams) adapt_linear_sum(step, partials.mixes);
  const bool partials_judged = declared.stores_partials != 0 && !inputs.scaled_streams;
  Expectations expectations;
  if (partials_judged) {
    const HostTensor& mixes = tensors.at(std::string(prefix) + "partial_mixes");
    const HostTensor& square_sums = tensors.at(std::string(prefix) + "partial_square_sums");
    const auto tiles = groups_of(mixes.rows(), kRowsPerTile, "rows");
    const RowMask rows = promised(step, "partial_mixes");
    expectations.push_back(expect_floats(mixes, partials.mixes, rows, tiles));
    expectations.push_back(expect_floats(square_sums, partials.square_sums, rows, tiles));
    const auto stored =
        reference::stored_partials(inputs, mixes.data<float>(), square_sums.data<float>());
    expect_outputs(step, tensors, reference::mhc_pre_outputs(inputs, stored, numerics), prefix, "",
                   expectations);
  }
  reference::MhcPreOutputs outputs = reference::mhc_pre_outputs(inputs, partials, numerics);
  // Equal products have equal rounding errors, which are not independent.
  if (inputs.scaled_streams && step.fill != Fill::real) {
    outputs.post.structured = outputs.comb.structured = true;
  }
  expect_outputs(step, tensors, std::move(outputs), prefix, partials_judged ? " (end to end)" : "",
                 expectations);
  return expectations;
}

void MhcMixing::expect_outputs(const Step& step, const TensorSet& tensors,
                               reference::MhcPreOutputs expected, std::string_view prefix,
                               std::string_view basis, Expectations& expectations) const {
  const auto expect_one = [&](const std::string& name, const reference::Estimate& estimate) {
    const HostTensor& got = tensors.at(std::string(prefix) + name);
    const std::int64_t rows_per_group = kRowsPerTile * (name == "comb" ? kStreams : 1);
    expectations.push_back(expect_floats(got, estimate, promised(step, name),
                                         groups_of(got.rows(), rows_per_group, "tile")));
    expectations.back().basis = basis;
  };
  adapt_coefficients(step, expected.post);
  adapt_coefficients(step, expected.comb);
  adapt_gated_sum(step, expected.layer_input);
  // Equal logits stay equal in every iteration: all entries of comb have the same rounding error.
  if (logits_ == LogitRange::equal) expected.comb.structured = true;
  expect_one("post", expected.post);
  expect_one("comb", expected.comb);
  expect_one("layer_input", expected.layer_input);
}

RowMask MhcMixing::promised(const Step& step, std::string_view tensor) const {
  const bool partial = tensor.starts_with("partial_");
  const bool per_stream = tensor == "comb" || tensor == "residual" || tensor == "residual_out";
  return promised_tokens(step, has_eps(), scalars_.tokens, per_stream ? kStreams : 1,
                         partial ? scalars_.splits : 1);
}

double MhcMixing::cost() const {
  constexpr double kTileTokens = 64, kTileThreads = 128, kChunk = 64, kIteration = 150;
  const auto tokens = static_cast<double>(scalars_.tokens);
  const auto columns = static_cast<double>(depth_);
  const double tiles = std::ceil(tokens / kTileTokens);
  const double chunks = std::ceil(columns / kChunk);
  const double staging = chunks * kTileThreads * 2 * kBarrierCost + columns * kMixes;
  const double joining =
      static_cast<double>(scalars_.splits) * kTileThreads * (kMixes + 1) * kShuffleCost;
  const double products = columns * (kMixes / 3.0 + 2) + kIteration * scalars_.sinkhorn_iterations;
  const double outputs = token_threads(scalars_.hidden) * (5 * kShuffleCost + 2 * kBarrierCost);
  return tiles * (staging + joining) + tokens * (products + outputs);
}

// Nanoseconds of the reference: 70 us per token for Sinkhorn with its error model, and 100 ns per
// element of K for the sums.
double MhcMixing::reference_cost() const {
  const double per_token = 70000 + 100.0 * static_cast<double>(depth_);
  return static_cast<double>(scalars_.tokens) * per_token;
}

// Multiply-adds per element of K: 24 for the products, one for its square, one for the gated sum.
// Sinkhorn's 20 iterations on 16 numbers are too few to count.
ReferenceWork MhcMixing::reference_work(const TensorSet& tensors) const {
  const auto tokens = static_cast<double>(scalars_.tokens);
  return {.bytes = reference_bytes(tensors),
          .multiply_adds = tokens * static_cast<double>(depth_) * (kMixes + 2),
          .exps = tokens * kMixes,
          .rsqrts = tokens};
}

}  // namespace plumb::cases
