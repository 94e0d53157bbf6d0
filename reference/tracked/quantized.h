// SPDX-License-Identifier: Apache-2.0
//
// Tracked arrays that are stored as codes of few bits, and which codes are right.
#pragma once

#include "reference/codes.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// What the codes mean: saturating, to nearest or, for a scale, up to a power of two. The scale of a
// code is the caller's: cast(x / scale, format) * scale.
Tracked cast(Tracked a, CodeFormat format);

// The same with the codes. honest_codes and flip_effort (codes.h) say of `codes` which neighbours
// are permitted as well, and how often they come up. Its rows are those of the last dimension.
// Where elements of a row share an error, all of a row may flip together.
struct QuantizedArray {
  Tracked values;
  CodeEstimate codes;
};
QuantizedArray quantized(Tracked a, CodeFormat format, Format through = Format::f64,
                         bool structured = false);

}  // namespace plumb::reference
