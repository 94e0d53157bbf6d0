// SPDX-License-Identifier: Apache-2.0
//
// Explains why a case of one op failed. Runs the library's wrong kernels (faults) on the case's own
// inputs, on the simulator. Also tries lazy kernels (plumb's own kernel with one added assumption)
// and hypotheses for any op: that it was not applied, or applied twice, or that its results were
// truncated or stored as fp16.
#pragma once

#include "cases/drivers/run.h"
#include "diagnosis/diagnosis.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

// Uses the evidence in a result of this case. `options` must be those of the failed run: the case
// gets the contract of their kernel, as it did there.
Diagnosis diagnose_case(const Case& any, const CaseResult& result, const RunOptions& options,
                        const std::vector<DecodeFault>& library = all_decode_faults());

}  // namespace plumb::cases
