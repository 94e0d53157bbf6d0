// SPDX-License-Identifier: Apache-2.0
//
// The ops that a plug-in may implement, and the sizes of their parameters.
#pragma once

#include <plumb/plumb_ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "plumb_op_list.h"

namespace plumb::device {

struct KnownOp {
  std::string_view name;
  std::size_t param_bytes;
  bool has_state;  // the op's parameters have a member `state`
};
template <class P>
inline constexpr bool kHasState = requires(P params) { params.state; };
inline constexpr KnownOp kOps[] = {
#define PLUMB_KNOWN_OP(op) {#op, sizeof(plumb_##op##_params), kHasState<plumb_##op##_params>},
    PLUMB_FOR_EACH_OP(PLUMB_KNOWN_OP)
#undef PLUMB_KNOWN_OP
};
inline constexpr std::size_t kOpCount = std::size(kOps);

// Ops that add_known_op has added in this process. Their positions follow those of kOps.
inline constexpr std::size_t kMostAddedOps = 64;
inline constexpr std::size_t kMostOps = kOpCount + kMostAddedOps;

inline constexpr std::size_t kMostParamBytes = 1024;
static_assert(std::ranges::all_of(kOps, [](const KnownOp& op) {
  return op.param_bytes <= kMostParamBytes;
}));

// `name` must live as long as the process. Throws std::length_error beyond kMostAddedOps ops, or
// kMostParamBytes bytes of parameters. Not thread-safe.
void add_known_op(std::string_view name, std::size_t param_bytes);
// Position in kOps, or behind those for an added op. kMostOps: there is no op of this name.
std::size_t position_of_op(std::string_view name);
// `position` must be one that position_of_op returns for an op.
const KnownOp& op_at(std::size_t position);

// Differs between builds whose interface version, ops or structure sizes differ. FNV-1a.
constexpr std::uint64_t interface_digest() {
  std::uint64_t digest = 14695981039346656037U;
  const auto add = [&](std::uint64_t value) { digest = (digest ^ value) * 1099511628211U; };
  add(PLUMB_ABI_VERSION);
  add(sizeof(plumb_numerics));
  for (const KnownOp& op : kOps) {
    for (const char letter : op.name) add(static_cast<std::uint64_t>(letter));
    add(op.param_bytes);
  }
  return digest;
}

}  // namespace plumb::device
