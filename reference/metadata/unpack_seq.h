// SPDX-License-Identifier: Apache-2.0
//
// unpack_seq (operations' specification, 4.6): which packed row holds each token.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

// For each token: the row of [sequences, max_length] that holds it. Throws std::invalid_argument
// for a length outside [0, max_length].
std::vector<std::int64_t> unpack_seq(const std::vector<std::int64_t>& lengths,
                                     std::int64_t max_length);

}  // namespace plumb::reference
