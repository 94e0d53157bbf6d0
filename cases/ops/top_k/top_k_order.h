// SPDX-License-Identifier: Apache-2.0
//
// The order of top-k's indices and the choice among equal keys, as an implementation declares them
// (plumb_index_order, plumb_equal_keys): whether results keep the declaration, and how results are
// compared bit for bit where it leaves something open. Both look at right selections only.
#pragma once

#include <optional>

#include "cases/ops/top_k/top_k.h"

namespace plumb::cases {

// Adds a failure for the rows whose indices break the declaration.
void judge_order(const HostTensor& indices, const TopKWindows& selection,
                 const plumb_numerics& declared, TensorReport& report);

// The indices in a canonical form, or nothing if the declaration leaves nothing open. Indices are
// sorted. If the choice among equal keys is open, one mark replaces every index at the threshold.
// Rows that are no selection stay as they are.
std::optional<HostTensor> canonical_selection(const HostTensor& indices,
                                              const TopKWindows& selection,
                                              const plumb_numerics& declared);

}  // namespace plumb::cases
