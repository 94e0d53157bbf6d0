// SPDX-License-Identifier: Apache-2.0
//
// plumb run --dump DIR: writes the tensors of a failed case as files that numpy reads.
#pragma once

#include <string>

#include "cases/drivers/run.h"

namespace plumb::tools {

// Folder of a case's files within `folder`: "rms_norm.v4_512.eager.sim-sm90".
std::string evidence_folder(const std::string& folder, const cases::CaseResult& result);

// Writes the first wrong launch of the case, replacing files of an earlier run. Every tensor has
// TENSOR.npy, without gaps between rows (bf16 as float32). Outputs with real numbers also have
// TENSOR.expected.npy, TENSOR.bound.npy and TENSOR.error.npy (|got - expected| / bound), all
// float64, with NaN where nothing is promised. Other outputs have TENSOR.expected.npy. case.json
// lists the files. Throws std::runtime_error with one line; then the folder does not exist.
void write_evidence(const std::string& folder, const cases::Case& which,
                    const cases::RunOptions& options, const cases::CaseResult& result,
                    const std::string& reproduce);

}  // namespace plumb::tools
