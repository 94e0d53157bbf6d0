// SPDX-License-Identifier: Apache-2.0
//
// A decode step of V3.2 on ROCm   [3]: each layer attends the top-k tokens of the whole context,
// with paged metadata. Seeded linear maps stand between the ops that plumb judges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/model.h"
#include "decode/engine/model_site.h"
#include "decode/metadata/v32_metadata.h"
#include "decode/models/indexer.h"
#include "decode/models/v32_workspace.h"
#include "decode/models/weights.h"

namespace plumb::device::decode {

// Traits of V3.2 for steps with this many query tokens per request.
ModelTraits v32_traits(std::int64_t query_tokens);

class V32Model final : public Model {
 public:
  V32Model(const Geometry& geometry, const ModelSite& site);

  ModelTraits traits() const override;
  void build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) override;
  std::vector<Segment> segments() override;
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                   Filled filled) override;
  std::vector<CacheView> caches() const override;
  PlanCounts plan_counts() const override { return metadata_.counts(); }
  std::optional<StepPart> made_plan() const override { return metadata_.made_plan(); }
  const std::uint16_t* out() const override { return space_.hidden; }

 private:
  // Paged caches of one layer. A token has the same slot in both.
  struct Caches {
    std::uint8_t* tokens;   // [blocks, page * 656]
    std::uint8_t* indexer;  // [blocks, page * (index_dim + 4)]
  };

  void add_layer(std::vector<Segment>& all, std::size_t layer);
  void embed(const StepContext& step);
  void project(const StepContext& step, std::size_t layer);
  void write_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                    std::size_t layer);
  void prepare_indexer(const StepContext& step, std::size_t layer);
  void run_indexer(const StepContext& step, std::size_t layer);
  void map_top_k(const StepContext& step, std::size_t layer);
  void attend(const StepContext& step, std::size_t layer);
  void feed_forward(const StepContext& step, std::size_t layer);
  void route(const StepContext& step, std::size_t layer);
  void add_and_norm(const StepContext& step, const CallPlace& place, std::uint16_t* x,
                    const std::uint16_t* weight);
  plumb_paged_cache paged(std::uint8_t* data, std::int64_t token_bytes) const;
  plumb_paged_cache token_cache(std::size_t layer) const;
  plumb_paged_cache indexer_cache(std::size_t layer) const;

  const Geometry& geometry_;
  const Requests& requests_;
  plumb_format dialect_, router_logits_;
  V32Metadata metadata_;
  V32Weights weights_;
  V32Workspace space_;
  Indexer indexer_;
  std::vector<Caches> caches_;
};

}  // namespace plumb::device::decode
