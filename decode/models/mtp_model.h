// SPDX-License-Identifier: Apache-2.0
//
// The drafter (MTP) step of V4, which follows a target step on the same tokens. It normalises and
// projects the embedding of each next token and the target's streams, adds them, runs one layer
// over the sliding window and the shared head   [7.3, 7.4]. Its window cache uses the target's
// block tables and slots; its metadata buffers are its own.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/model.h"
#include "decode/models/v4_layers.h"

namespace plumb::device::decode {

// The target's geometry with a single layer, over the window.
Geometry drafter_geometry(Geometry target);

class MtpModel final : public Model {
 public:
  // `geometry`: the drafter's. `previous`: bf16 [tokens, 4, hidden], the target's streams before
  // its hc_head.
  MtpModel(const Geometry& geometry, const std::uint16_t* previous, const ModelSite& site);

  ModelTraits traits() const override;
  void build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) override;
  std::vector<Segment> segments() override;
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                   Filled filled) override;
  std::vector<CacheView> caches() const override { return layers_.caches(); }
  const std::uint16_t* out() const override { return layers_.space().out; }

 private:
  void embed(const StepContext& step);
  void join(const StepContext& step);
  void read_out(const StepContext& step);

  const Geometry& geometry_;
  const std::uint16_t* previous_;
  const LayerPolicy& layer_policy_;
  V4Layers layers_;
  MtpWeights weights_;
  std::uint16_t *normed_embeds_, *normed_streams_;  // bf16 [tokens, hidden], [tokens, 4, hidden]
};

}  // namespace plumb::device::decode
