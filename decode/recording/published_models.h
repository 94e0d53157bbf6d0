// SPDX-License-Identifier: Apache-2.0
//
// Constants and sizes of the published models, with sources. Reference and kernel read constants
// from the call, so both would use a wrong one. Decode steps are therefore checked against this
// list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

struct PublishedModel {
  std::string_view name, source;
  std::int64_t hidden, heads, q_lora;
  std::int64_t index_heads, index_dim, index_topk;
  std::int64_t window;                      // in tokens; 0: no window
  std::int64_t experts, experts_per_token;  // routed ones
  std::int64_t expert_groups, kept_groups;  // 0: none
  double eps;                               // of each RMSNorm
  double routed_scaling;
  double sm_scale;                    // softmax scale of the attention
  std::string_view index_rope_pairs;  // RoPE pairs of index queries
  bool index_rope_first;              // else the last dims are rotated
  std::int64_t sinkhorn_iterations;   // 0: no hyper-connections
  double hc_eps, post_mult;
};
// Throws std::out_of_range for an unknown name.
const PublishedModel& published_model(std::string_view name);
const std::vector<PublishedModel>& published_models();

// One line per constant of the call that differs from the model's: "sm_scale is 0.5, not 0.0441942
// as in V4-Flash". Sizes are not compared, because small geometries have their own.
std::vector<std::string> broken_conventions(const PublishedModel& model, const OpDefinition& op,
                                            const void* params);

}  // namespace plumb::cases
