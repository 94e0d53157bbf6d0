// SPDX-License-Identifier: Apache-2.0
//
// pack_seq (operations' specification, 4.6): which token each packed row holds. Rows are copied
// whatever they contain, so the reference returns numbers of tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

// For each row of [sequences, max_length]: the token in it, or -1 for padding. Throws
// std::invalid_argument for a length outside [0, max_length].
std::vector<std::int64_t> pack_seq(const std::vector<std::int64_t>& lengths,
                                   std::int64_t max_length);

}  // namespace plumb::reference
