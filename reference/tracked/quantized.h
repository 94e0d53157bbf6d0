// SPDX-License-Identifier: Apache-2.0
//
// Tracked arrays that are stored as codes of few bits, and the codes that are right.
#pragma once

#include "reference/codes.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// The values of a's codes. Codes saturate and round to nearest; scales round up to a power of two.
// The caller applies the scale: cast(x / scale, format) * scale.
Tracked cast(Tracked a, CodeFormat format);

// cast() with the codes. honest_codes and flip_effort (codes.h) say which neighbours of `codes` are
// right as well, and how often they occur. Rows are those of the last dimension. If elements of a
// row share an error, the whole row may flip together.
struct QuantizedArray {
  Tracked values;
  CodeEstimate codes;
};
QuantizedArray quantized(Tracked a, CodeFormat format, Format through = Format::f64,
                         bool structured = false);

}  // namespace plumb::reference
