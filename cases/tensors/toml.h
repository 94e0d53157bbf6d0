// SPDX-License-Identifier: Apache-2.0
//
// Includes toml++ as plumb uses it. Some malformed texts violate toml++'s assertions, so its
// assertions are turned into exceptions here.
#pragma once

#include <stdexcept>

namespace plumb::cases {

struct MalformedToml : std::runtime_error {
  MalformedToml() : std::runtime_error("is not TOML") {}
};

constexpr void require_toml(bool holds) {
  if (!holds) throw MalformedToml();
}

}  // namespace plumb::cases

#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) plumb::cases::require_toml(static_cast<bool>(condition))
#include <toml++/toml.h>
