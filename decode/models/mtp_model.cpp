// SPDX-License-Identifier: Apache-2.0
#include "decode/models/mtp_model.h"

#include <plumb/ops/norm.h>

#include <stdexcept>

#include "decode/models/linear.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

Geometry drafter_geometry(Geometry target) {
  target.layers = {Attention::window};
  return target;
}

MtpModel::MtpModel(const Geometry& geometry, const std::uint16_t* previous, const ModelSite& site)
    : geometry_(geometry),
      previous_(previous),
      layer_policy_(*site.policies.layers),
      layers_(geometry, FirstMix::streams, true, site),
      weights_(geometry, site.device, site.stream, site.memory, site.seed),
      normed_embeds_(site.memory.allocate<std::uint16_t>(geometry.max_tokens() * geometry.hidden,
                                                         "draft normed embeds")),
      normed_streams_(site.memory.allocate<std::uint16_t>(
          geometry.max_tokens() * kStreams * geometry.hidden, "draft normed streams")) {
  if (previous == nullptr) throw std::invalid_argument("a drafter behind a model without streams");
}

ModelTraits MtpModel::traits() const {
  return {.name = "the V4 drafter",
          .full_graphs = FullGraphSupport::uniform_batch,
          .automatic_mode = GraphMode::breakable};
}

void MtpModel::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  layers_.build_metadata(call, inputs, plan);
}

void MtpModel::fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                           Filled filled) {
  layers_.fill_caches(call, inputs, tokens, filled);
}

std::vector<Segment> MtpModel::segments() {
  std::vector<Segment> all;
  all.push_back({.name = "draft input", .run = [this](const StepContext& step) {
                   embed(step);
                   join(step);
                 }});
  layers_.add_segments(all);
  all.push_back({.name = "draft head", .run = [this](const StepContext& step) { read_out(step); }});
  return all;
}

// The token at position 0 has no predecessor, so mtp_input_rms_norm takes its embedding as zero.
void MtpModel::embed(const StepContext& step) {
  std::uint16_t* const embeds = layers_.space().embeds;
  step.call("seeded_rows", "draft embedding",
            plumb_seeded_rows_params{.keys = step.inputs.next_token_keys,
                                     .out = embeds,
                                     .rows = step.tokens,
                                     .columns = geometry_.hidden,
                                     .seed = kV4EmbeddingSeed,
                                     .stream = nullptr});
  const bool swaps = layer_policy_.swaps_draft_norms();
  step.call("mtp_input_rms_norm", "draft input norm",
            plumb_mtp_input_rms_norm_params{.embeds = embeds,
                                            .previous_hidden = previous_,
                                            .positions = step.inputs.draft_positions,
                                            .enorm_weight = swaps ? weights_.hnorm : weights_.enorm,
                                            .hnorm_weight = swaps ? weights_.enorm : weights_.hnorm,
                                            .out_embeds = normed_embeds_,
                                            .out_hidden = normed_streams_,
                                            .tokens = step.tokens,
                                            .hidden = geometry_.hidden,
                                            .hc_mult = kStreams,
                                            .out_embeds_row_stride = geometry_.hidden,
                                            .out_hidden_token_stride = kStreams * geometry_.hidden,
                                            .out_hidden_slot_stride = geometry_.hidden,
                                            .eps = kEps,
                                            .stream = nullptr});
}

// Projects embeddings and streams. The first mix of the layer then adds the projected embedding to
// each stream.
void MtpModel::join(const StepContext& step) {
  Workspace& space = layers_.space();
  std::uint16_t* const streams = space.streams[1];  // the first mix writes streams[0]
  const std::int64_t hidden = geometry_.hidden;
  linear(step, "draft embedding projection", Projection::draft_embedding, normed_embeds_, hidden,
         space.x, hidden);
  linear(step, "draft stream projection", Projection::draft_stream, normed_streams_,
         kStreams * hidden, streams, kStreams * hidden);
  layers_.mix_first(step, {streams, weights_.ones, weights_.identities});
}

void MtpModel::read_out(const StepContext& step) {
  layers_.read_out(step);
  step.call("mtp_shared_head_rms_norm", "draft head norm",
            plumb_mtp_shared_head_rms_norm_params{.x = layers_.space().head,
                                                  .weight = layers_.weights().final_norm,
                                                  .out = layers_.space().out,
                                                  .tokens = step.tokens,
                                                  .hidden = geometry_.hidden,
                                                  .out_row_stride = geometry_.hidden,
                                                  .eps = kEps,
                                                  .stream = nullptr});
}

}  // namespace plumb::device::decode
