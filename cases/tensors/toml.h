// SPDX-License-Identifier: Apache-2.0
//
// toml++ as plumb uses it. It asserts what some malformed texts violate, so that an assertion is an
// exception here.
#pragma once

#include <stdexcept>

namespace plumb::cases {

struct MalformedToml : std::runtime_error {
  MalformedToml() : std::runtime_error("is no TOML") {}
};

constexpr void require_toml(bool holds) {
  if (!holds) throw MalformedToml();
}

}  // namespace plumb::cases

#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) plumb::cases::require_toml(static_cast<bool>(condition))
#include <toml++/toml.h>
