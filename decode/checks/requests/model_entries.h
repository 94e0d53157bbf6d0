// SPDX-License-Identifier: Apache-2.0
//
// Numbers and names of cache entries and tokens in the model of requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plumb::cases {

// Tokens per entry of a cache (0: window, 1: c4a, 2: c128a, 3: c4a partial, 4: c128a partial).
std::int64_t tokens_of_entry(std::size_t cache);
// Whether an entry is a compressed state. The device computes the slots of these.
bool is_compressed(std::size_t cache);
// "position 7 of request 3", "c4a state 1 of request 3", "c4a partial state 7 of request 3"
std::string name_of_entry(std::uint64_t request, std::size_t cache, std::int64_t number);

// Key of the token at a position of a request, after this many steps that rejected tokens.
std::int64_t token_key(std::uint64_t request, std::int64_t position, std::int64_t rejections);
// "token 7 of request 3", "token 7 of request 3 behind 2 rejections" (after two such steps)
std::string name_of_token(std::int64_t key);
}  // namespace plumb::cases
