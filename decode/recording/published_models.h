// SPDX-License-Identifier: Apache-2.0
//
// What the published models fix, and where it stands. Reference and kernel take a call's constants
// from the call, so a wrong one is the same on both sides: decode steps are checked against this.
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
  std::int64_t window;                      // tokens; 0: none
  std::int64_t experts, experts_per_token;  // routed ones
  std::int64_t expert_groups, kept_groups;  // 0: none
  double eps;                               // of every RMSNorm
  double routed_scaling;
  double sm_scale;                    // of the attention's scores
  std::string_view index_rope_pairs;  // of the indexer's queries
  bool index_rope_first;              // else the last dims rotate
  std::int64_t sinkhorn_iterations;   // 0: no hyper-connections
  double hc_eps, post_mult;
};
// Throws std::out_of_range for an unknown name.
const PublishedModel& published_model(std::string_view name);
const std::vector<PublishedModel>& published_models();

// "sm_scale is 0.5, not 0.0441942 as in V4-Flash" of each constant of the call that is not the
// model's. Sizes are not looked at: a small geometry has its own.
std::vector<std::string> broken_conventions(const PublishedModel& model, const OpDefinition& op,
                                            const void* params);

}  // namespace plumb::cases
