// SPDX-License-Identifier: Apache-2.0
//
// The C struct of one launch as named arguments, by the op's table: for kernels in other
// languages.
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
  std::string format;                        // of codes: "e4m3fn"; else "number"
  std::vector<std::int64_t> shape, strides;  // in elements
};

// Tensors have the names of plumb list --arguments. All others are members of the C struct:
// cache.page is cache_page. A member whose values are words has the word. Nothing: the call lacks
// this optional tensor, or the struct of this member.
struct LaunchArgument {
  std::string name;
  std::variant<std::monostate, LaunchTensor, std::int64_t, float, std::string> value;
};

// Bytes from an address to the end of its allocation. A table does not know how many rows some
// tensors have (a cache, cosines of positions): those get as many as there is memory for.
using BytesFrom = std::function<std::size_t(const void* address)>;

std::vector<LaunchArgument> launch_arguments(const OpDefinition& op, const void* params,
                                             const BytesFrom& bytes_from);

// The name and the kind of each: "tensor", "integer", "real" or "word".
struct LaunchArgumentName {
  std::string name, kind;
};
std::vector<LaunchArgumentName> launch_argument_names(const OpDefinition& op);

// The bytes of a launch, to be used after its structs have changed or gone.
std::vector<std::byte> freeze_launch(const OpTable& table, const void* params);
std::size_t frozen_bytes(const OpTable& table);
// The op's struct in such bytes, which are aligned for any type and live as long as the struct.
const void* thaw_launch(const OpTable& table, std::byte* frozen);

}  // namespace plumb::cases
