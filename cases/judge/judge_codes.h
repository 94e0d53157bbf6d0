// SPDX-License-Identifier: Apache-2.0
//
// The verdict on quantised tensors: codes and scale bytes (docs/judging.md, "Codes").
#pragma once

#include "cases/judge/judge.h"
#include "reference/codes.h"

namespace plumb::cases {

// One code per element: a u8 tensor (an e2m1 code takes one byte), or a bf16 one. Fails if a code
// is not among the roundings of value ± error, or if more codes lie on the other side of a rounding
// boundary than the errors explain. The estimate includes the scale: compute it from the scales
// that the device stored.
TensorReport judge_codes(const HostTensor& got, const reference::CodeEstimate& expected,
                         const RowMask& promised);

}  // namespace plumb::cases
