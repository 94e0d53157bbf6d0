// SPDX-License-Identifier: Apache-2.0
//
// Entries and tokens as the model of requests counts and names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plumb::cases {

// Of entry 0, 1, ... of a cache: window, c4a, c128a.
std::int64_t tokens_of_entry(std::size_t cache);
// "position 7 of request 3", "c4a state 1 of request 3"
std::string name_of_entry(std::uint64_t request, std::size_t cache, std::int64_t number);

// The token at a position of a request behind so many steps that rejected a token.
std::int64_t token_key(std::uint64_t request, std::int64_t position, std::int64_t rejections);
// "token 7 of request 3", "token 7 of request 3 behind 2 rejections"
std::string name_of_token(std::int64_t key);
// The compressed state of a number.
std::int64_t state_key(std::uint64_t request, std::int64_t number);

}  // namespace plumb::cases
