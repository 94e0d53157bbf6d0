// SPDX-License-Identifier: Apache-2.0
//
// Converts the C struct of a launch into named arguments, using the op's table. For kernels in
// other languages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

struct LaunchTensor {
  std::byte* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::string format;                        // of codes: "e4m3fn"; otherwise "number"
  std::vector<std::int64_t> shape, strides;  // in elements
};

// One argument. Tensors are named as in plumb list --arguments, other arguments after the member of
// the C struct (cache.page becomes cache_page). An enum member has its word as value. monostate:
// the call lacks this optional tensor, or the pointer to the member's struct is null.
struct LaunchArgument {
  std::string name;
  std::variant<std::monostate, LaunchTensor, std::int64_t, float, std::string> value;
};

// Returns the bytes from an address to the end of its allocation. The table does not know the
// number of rows of some tensors (a cache, cosines of positions): these get all rows that fit.
using BytesFrom = std::function<std::size_t(const void* address)>;

std::vector<LaunchArgument> launch_arguments(const OpDefinition& op, const void* params,
                                             const BytesFrom& bytes_from);

// Name and kind of an argument; kind is "tensor", "integer", "real" or "word".
struct LaunchArgumentName {
  std::string name, kind;
};
std::vector<LaunchArgumentName> launch_argument_names(const OpDefinition& op);

// Copies the structs of a launch, so that it can be used after they have changed or are gone.
std::vector<std::byte> freeze_launch(const OpTable& table, const void* params);
std::size_t frozen_bytes(const OpTable& table);
// The op's struct within frozen bytes. The bytes must be aligned for any type and outlive the
// struct.
const void* thaw_launch(const OpTable& table, std::byte* frozen);

}  // namespace plumb::cases
