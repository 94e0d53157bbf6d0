// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre_broadcast: mhc_pre of the first layer, whose four streams are equal. fn is summed over
// the streams, and the mean square is taken over the hidden size (operations spec, 6.5).
#pragma once

#include "reference/hyper_connection/mhc_pre.h"

namespace plumb::reference {

// Views bf16 [tokens, hidden] as four equal streams (slot stride 0).
Streams broadcast(const std::uint16_t* residual, std::int64_t tokens, std::int64_t hidden,
                  std::int64_t token_stride);

}  // namespace plumb::reference
