// SPDX-License-Identifier: Apache-2.0
//
// Constants of calls are compared with those of the published models: each wrong one is reported.
#include "decode/recording/published_models.h"

#include <gtest/gtest.h>
#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/norm.h>
#include <plumb/ops/router.h>
#include <plumb/ops/sparse_mla.h>

#include <string>
#include <vector>

#include "cases/tables/registry.h"
#include "decode/engine/geometry.h"

namespace plumb::cases {
namespace published_models_test {

template <class P>
std::vector<std::string> broken(std::string_view model, std::string_view op, const P& params) {
  return broken_conventions(published_model(model), find_op(op), &params);
}
using Lines = std::vector<std::string>;

plumb_indexer_q_rope_quant_params v32_query() {
  plumb_indexer_q_rope_quant_params p{};
  p.heads = 64;
  p.dim = 128;
  p.rope_dim = 64;
  p.rope_pairs = PLUMB_ROPE_HALVES;
  p.softmax_scale = 0.0883883476F;  // 128^-0.5
  p.head_scale = 0.125F;
  return p;
}

TEST(PublishedModels, PinHowTheIndexerRotates) {
  EXPECT_EQ(broken("V3.2", "indexer_q_rope_quant", v32_query()), Lines{});
  auto p = v32_query();
  p.rope_pairs = PLUMB_ROPE_INTERLEAVED;
  EXPECT_EQ(broken("V3.2", "indexer_q_rope_quant", p),
            Lines{"rope_pairs is interleaved, not halves as in V3.2"});
  EXPECT_EQ(broken("V4-Flash", "indexer_q_rope_quant", v32_query()),
            (Lines{"rope_pairs is halves, not interleaved as in V4-Flash",
                   "rope_offset is 0, not 64 as in V4-Flash"}));
  p.rope_offset = 64;
  EXPECT_EQ(broken("V4-Flash", "indexer_q_rope_quant", p), Lines{});
  p.head_scale = 0.25F;
  p.softmax_scale = 1;
  EXPECT_EQ(broken("V4-Flash", "indexer_q_rope_quant", p).size(), 2U);
}

TEST(PublishedModels, PinScales) {
  plumb_sparse_mla_decode_params p{};
  p.sm_scale = 0.0441941738F;
  EXPECT_EQ(broken("V4-Pro", "sparse_mla_decode", p), Lines{});
  EXPECT_EQ(broken("V3.2", "sparse_mla_decode", p),
            Lines{"sm_scale is 0.044194173, not 0.13523378 as in V3.2"});
  plumb_sqrt_softplus_topk_params router{};
  router.routed_scaling_factor = 1.5F;
  router.renormalize = 1;
  EXPECT_EQ(broken("V4-Flash", "sqrt_softplus_topk", router), Lines{});
  EXPECT_EQ(broken("V4-Pro", "sqrt_softplus_topk", router),
            Lines{"routed_scaling_factor is 1.5, not 2.5 as in V4-Pro"});
}

TEST(PublishedModels, PinEachEpsOfTheHyperConnections) {
  plumb_mhc_pre_params p{};
  p.rms_eps = p.norm_eps = p.pre_eps = p.sinkhorn_eps = 1e-6F;
  p.post_mult = 2;
  p.sinkhorn_iterations = 20;
  EXPECT_EQ(broken("V4-Pro", "mhc_pre", p), Lines{});
  p.sinkhorn_eps = 1e-8F;
  p.sinkhorn_iterations = 19;
  EXPECT_EQ(broken("V4-Pro", "mhc_pre", p),
            (Lines{"sinkhorn_eps is 1e-08, not 1e-06 as in V4-Pro",
                   "sinkhorn_iterations is 19, not 20 as in V4-Pro"}));
}

// A zeroed struct differs in each constant that the op has.
TEST(PublishedModels, PinEachConstantOfAnOp) {
  EXPECT_EQ(broken("V4-Pro", "mhc_pre", plumb_mhc_pre_params{}).size(), 6U);
  EXPECT_EQ(broken("V4-Pro", "hc_head", plumb_hc_head_params{}).size(), 2U);
  EXPECT_EQ(broken("V3.2", "grouped_topk", plumb_grouped_topk_params{}).size(), 2U);
  EXPECT_EQ(broken("V3.2", "rms_norm", plumb_rms_norm_params{}).size(), 1U);
  EXPECT_EQ(broken("V4-Pro", "sparse_mla_prefill", plumb_sparse_mla_prefill_params{}).size(), 1U);
  auto p = v32_query();
  p.rope_dim = 0;
  EXPECT_EQ(broken("V3.2", "indexer_q_rope_quant", p), Lines{"rope_dim is 0, not 64 as in V3.2"});
}

TEST(PublishedModels, AreTheSizesOfTheServedGeometries) {
  using device::decode::Geometry;
  for (const Geometry& g :
       {device::decode::production_geometry(), device::decode::production_v32_geometry()}) {
    const PublishedModel& model = published_model(g.model);
    EXPECT_EQ(g.hidden, model.hidden);
    EXPECT_EQ(g.heads * 8, model.heads);  // a geometry is one of eight ranks
    EXPECT_EQ(g.q_lora, model.q_lora);
    EXPECT_EQ(g.index_heads, model.index_heads);
    EXPECT_EQ(g.index_dim, model.index_dim);
    EXPECT_EQ(g.top_k, model.index_topk);
    EXPECT_EQ(g.window, model.window);
    EXPECT_EQ(g.experts, model.experts);
    EXPECT_EQ(g.experts_per_token, model.experts_per_token);
    EXPECT_EQ(g.expert_groups, model.expert_groups);
    EXPECT_EQ(g.kept_groups, model.kept_groups);
  }
}

}  // namespace published_models_test
}  // namespace plumb::cases
