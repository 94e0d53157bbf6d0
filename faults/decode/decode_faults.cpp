// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/decode_faults.h"

#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"

namespace plumb::cases {

namespace {

std::vector<DecodeFault> make_faults() {
  std::vector<DecodeFault> all;
  for (const auto& make :
       {faults_of_42604, faults_of_42982, faults_of_43746, faults_of_42810, faults_of_42444,
        faults_of_hazards, faults_of_requests, faults_of_kernel_plans, faults_of_compressor}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// As many experts as a served model has, so that scores are close together.
DecodeSetup with_256_experts(DecodeSetup setup) {
  setup.geometry.experts = 256;
  setup.geometry.experts_per_token = 8;
  setup.geometry.expert_groups = 8;
  setup.geometry.kept_groups = 4;
  return setup;
}

}  // namespace

const std::vector<DecodeFault>& all_decode_faults() {
  static const std::vector<DecodeFault> faults = make_faults();
  return faults;
}

const std::vector<DecodeFault>& faults_within_numerics() {
  static const std::vector<DecodeFault> faults{
      {.name = "router_logits_in_bf16",
       .stands_for = "vLLM #42982: the router's logits are rounded to bf16",
       .broken = "grouped_topk",
       .seen_by = Detector::reference,
       .blind = Detector::reference,
       .schedule = {Traffic::steady, Lengths::random, 16, 8, 1},
       .inject = both(both(of_v32(), with_256_experts),
                      policy<RouterLogitsInBf16>(&device::decode::Policies::layers)),
       .within_numerics = true}};
  return faults;
}

}  // namespace plumb::cases
