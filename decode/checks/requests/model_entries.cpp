// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/requests/model_entries.h"

#include <fmt/format.h>

#include <array>

#include "decode/engine/geometry.h"

namespace plumb::cases {

namespace {

// Layout of a key: 32 bits of request, 11 of rejections, 21 of position.
constexpr std::int64_t kOfRequest = std::int64_t{1} << 32, kOfRejection = std::int64_t{1} << 21;

}  // namespace

std::int64_t tokens_of_entry(std::size_t cache) {
  constexpr std::array<std::int64_t, device::decode::kCaches> kTokens{1, device::decode::kC4a,
                                                                      device::decode::kC128a, 1, 1};
  return kTokens[cache];
}

bool is_compressed(std::size_t cache) { return tokens_of_entry(cache) > 1; }

std::string name_of_entry(std::uint64_t request, std::size_t cache, std::int64_t number) {
  constexpr std::array<const char*, device::decode::kCaches> kNames{
      "position", "c4a state", "c128a state", "c4a partial state", "c128a partial state"};
  return fmt::format("{} {} of request {}", kNames[cache], number, request);
}

std::int64_t token_key(std::uint64_t request, std::int64_t position, std::int64_t rejections) {
  return static_cast<std::int64_t>(request) * kOfRequest +
         rejections % (kOfRequest / kOfRejection) * kOfRejection + position;
}

std::string name_of_token(std::int64_t key) {
  const std::int64_t rejections = key % kOfRequest / kOfRejection;
  return fmt::format("token {} of request {}{}", key % kOfRejection, key / kOfRequest,
                     rejections == 0 ? "" : fmt::format(" behind {} rejections", rejections));
}

}  // namespace plumb::cases
