// SPDX-License-Identifier: Apache-2.0
//
// The faults of a decode step, grouped by the vLLM change or the hazard that they stand for. Each
// list has a file of its own (decode_faults_<name>.cpp).
#pragma once

#include <vector>

#include "faults/decode/decode_faults.h"

namespace plumb::cases {

std::vector<DecodeFault> faults_of_42604();     // graphs around ragged metadata; FP8 dialects
std::vector<DecodeFault> faults_of_42982();     // V3.2's metadata builder and its cached plan
std::vector<DecodeFault> faults_of_43746();     // the drafter's norm; breakable graphs
std::vector<DecodeFault> faults_of_42810();     // top-k, hyper-connections, missing or repeated ops
std::vector<DecodeFault> faults_of_42444();     // attention state planned before the capture
std::vector<DecodeFault> faults_of_hazards();   // hazards that none of these changes stands for
std::vector<DecodeFault> faults_of_requests();  // the bookkeeping of the host
std::vector<DecodeFault> faults_of_compressor();  // V4's compressor: host and kernels
std::vector<DecodeFault>
faults_of_kernel_plans();  // which part of a kernel does what; gathered keys

}  // namespace plumb::cases
