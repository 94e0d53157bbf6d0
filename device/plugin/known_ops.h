// SPDX-License-Identifier: Apache-2.0
//
// The ops that a plug-in may have an entry for, and the size of their parameters.
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
  bool has_state;  // a member of its parameters
};
template <class P>
inline constexpr bool kHasState = requires(P params) { params.state; };
inline constexpr KnownOp kOps[] = {
#define PLUMB_KNOWN_OP(op) {#op, sizeof(plumb_##op##_params), kHasState<plumb_##op##_params>},
    PLUMB_FOR_EACH_OP(PLUMB_KNOWN_OP)
#undef PLUMB_KNOWN_OP
};
inline constexpr std::size_t kOpCount = std::size(kOps);

// Ops that this process has added (add_known_op). Their positions follow those of kOps.
inline constexpr std::size_t kMostAddedOps = 64;
inline constexpr std::size_t kMostOps = kOpCount + kMostAddedOps;

inline constexpr std::size_t kMostParamBytes = 1024;
static_assert(std::ranges::all_of(kOps, [](const KnownOp& op) {
  return op.param_bytes <= kMostParamBytes;
}));

// `name` has to last as long as the process. Throws std::length_error past kMostAddedOps, or for
// parameters of more than kMostParamBytes. Not beside other calls.
void add_known_op(std::string_view name, std::size_t param_bytes);
// Position of an op of kOps or of an added one; kMostOps: there is none of this name.
std::size_t position_of_op(std::string_view name);
// The op at a position that there is.
const KnownOp& op_at(std::size_t position);

// Differs between builds whose structures differ in size. FNV-1a.
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
