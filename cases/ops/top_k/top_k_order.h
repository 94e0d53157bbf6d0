// SPDX-License-Identifier: Apache-2.0
//
// What an implementation declares about the order of top-k's indices and the choice among equal
// keys (plumb_index_order, plumb_equal_keys): whether it is so, and how results are compared bit
// for bit where it is left open. Both look at right selections only.
#pragma once

#include <optional>

#include "cases/ops/top_k/top_k.h"

namespace plumb::cases {

// Adds a failure for the rows whose indices break the declaration.
void judge_order(const HostTensor& indices, const TopKWindows& selection,
                 const plumb_numerics& declared, TensorReport& report);

// The indices with what is declared to be open brought into one form: ascending, and with one mark
// in the place of every index at the threshold where the choice among equal keys is open. Nothing
// if the declaration leaves nothing open. Rows that are no selection stay as they are.
std::optional<HostTensor> canonical_selection(const HostTensor& indices,
                                              const TopKWindows& selection,
                                              const plumb_numerics& declared);

}  // namespace plumb::cases
