// SPDX-License-Identifier: Apache-2.0
//
// A decode step of V4 on ROCm: embedding, layers, head.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/model.h"
#include "decode/models/v4_layers.h"

namespace plumb::device::decode {

class V4Model final : public Model {
 public:
  V4Model(const Geometry& geometry, const ModelSite& site);

  ModelTraits traits() const override;
  void build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) override;
  std::vector<Segment> segments() override;
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                   Filled filled) override;
  std::vector<CacheView> caches() const override { return layers_.caches(); }
  const std::uint16_t* out() const override { return layers_.space().out; }
  const std::uint16_t* final_streams() const override { return layers_.final_streams(); }

 private:
  void embed(const StepContext& step);
  void read_out(const StepContext& step);

  const Geometry& geometry_;
  V4Layers layers_;
};

}  // namespace plumb::device::decode
