// SPDX-License-Identifier: Apache-2.0
#include "decode/models/v4_model.h"

#include <plumb/ops/norm.h>

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

V4Model::V4Model(const Geometry& geometry, const ModelSite& site)
    : geometry_(geometry), layers_(geometry, FirstMix::broadcast, false, site) {}

ModelTraits V4Model::traits() const {
  return {.name = "V4",
          .full_graphs = FullGraphSupport::uniform_batch,
          .automatic_mode = GraphMode::breakable};
}

void V4Model::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  layers_.build_metadata(call, inputs, plan);
}

void V4Model::fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                          Filled filled) {
  layers_.fill_caches(call, inputs, tokens, filled);
}

std::vector<Segment> V4Model::segments() {
  std::vector<Segment> all;
  all.push_back({.name = "embedding", .run = [this](const StepContext& step) { embed(step); }});
  layers_.add_segments(all);
  all.push_back({.name = "head", .run = [this](const StepContext& step) { read_out(step); }});
  return all;
}

void V4Model::embed(const StepContext& step) {
  std::uint16_t* const embeds = layers_.space().embeds;
  step.call("seeded_rows", "embedding",
            plumb_seeded_rows_params{.keys = step.inputs.token_keys,
                                     .out = embeds,
                                     .rows = step.tokens,
                                     .columns = geometry_.hidden,
                                     .seed = kV4EmbeddingSeed,
                                     .stream = nullptr});
  layers_.mix_broadcast(step, embeds);
}

void V4Model::read_out(const StepContext& step) {
  layers_.read_out(step);
  step.call("rms_norm", "final norm",
            plumb_rms_norm_params{.x = layers_.space().head,
                                  .weight = layers_.weights().final_norm,
                                  .out = layers_.space().out,
                                  .tokens = step.tokens,
                                  .hidden = geometry_.hidden,
                                  .x_row_stride = geometry_.hidden,
                                  .out_row_stride = geometry_.hidden,
                                  .eps = kEps,
                                  .rounding = PLUMB_ROUND_ONCE,
                                  .stream = nullptr});
}

}  // namespace plumb::device::decode
