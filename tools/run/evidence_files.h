// SPDX-License-Identifier: Apache-2.0
//
// plumb run --dump DIR: the tensors of a failed case as files that numpy reads.
#pragma once

#include <string>

#include "cases/drivers/run.h"

namespace plumb::tools {

// Folder of a case's files within `folder`: "rms_norm.v4_512.eager.sim-sm90".
std::string evidence_folder(const std::string& folder, const cases::CaseResult& result);

// Writes the first wrong launch of the case, in place of what an earlier run wrote there:
// TENSOR.npy of each tensor, without gaps between rows (bf16 as float32); of those with real
// numbers also TENSOR.expected.npy, TENSOR.bound.npy and TENSOR.error.npy, which is |got -
// expected| / bound, all float64, NaN where nothing is promised; of other outputs
// TENSOR.expected.npy. case.json says which is which. Throws std::runtime_error: one line; the
// folder is then not there.
void write_evidence(const std::string& folder, const cases::Case& which,
                    const cases::RunOptions& options, const cases::CaseResult& result,
                    const std::string& reproduce);

}  // namespace plumb::tools
