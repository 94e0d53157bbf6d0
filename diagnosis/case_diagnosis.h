// SPDX-License-Identifier: Apache-2.0
//
// Why a case of one op failed: the wrong kernels of the library (faults) that are linked in
// run on the case's own inputs, on the simulator, and so does what can be said of any op: that it
// was not applied, or twice, or that its results are truncated.
#pragma once

#include "cases/drivers/run.h"
#include "diagnosis/diagnosis.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

// Of the evidence in a result of this case; `options` as they were when it ran.
Diagnosis diagnose_case(const Case& which, const CaseResult& result, const RunOptions& options,
                        const std::vector<DecodeFault>& library = all_decode_faults());

}  // namespace plumb::cases
