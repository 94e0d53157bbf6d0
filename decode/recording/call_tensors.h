// SPDX-License-Identifier: Apache-2.0
//
// A call of a decode step with the Problem or placeholder that judges it, and the device address of
// each of its tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "decode/recording/call_record.h"
#include "decode/recording/placeholder_references.h"

namespace plumb::cases {

// Addresses of the call's tensors.
std::vector<Binding> bindings_of(const device::decode::Call& call,
                                 const device::decode::Geometry& geometry);
// Suffix of the tensor that holds the contents before a call of a tensor changed in place.
inline constexpr std::string_view kBefore = "_before";
// Binding of a tensor. "cache_before" has the binding of "cache". nullptr: none.
const Binding* find_binding(const std::vector<Binding>& bindings, std::string_view name);

struct JudgedCall {
  std::string op;
  Row row;                           // row of the op's cases
  std::unique_ptr<Problem> problem;  // nullptr: a placeholder
  std::unique_ptr<PlaceholderReference> placeholder;
  plumb_numerics declared = {};             // the implementation's, for this call
  std::vector<std::string> unconventional;  // constants that differ from the model's, one line each
  std::vector<Binding> bindings;            // of this call

  // Tensors of the call's sizes. Throws std::logic_error for a tensor without a binding.
  TensorSet make_tensors() const;
  Step step() const;  // all rows, padding included: the inputs mark padding
  Expectations expect(const TensorSet& tensors) const;
};
// `entry`: implementation whose numerics and contract apply. nullptr: plumb's defaults.
JudgedCall judged_call(const device::decode::Call& call, const device::OpEntry* entry,
                       const device::decode::Geometry& geometry,
                       const device::Properties& properties);

// Bytes of a tensor on the device, from its first to its last.
std::size_t bytes_there(const HostTensor& tensor, const Binding& binding);
// Convert between the call's rows and the Problem's, whose rows may differ in length.
void unpack_rows(const std::byte* from, std::int64_t row_bytes, HostTensor& to);
void pack_rows(const Bytes& from, const HostTensor& layout, std::int64_t row_bytes, std::byte* to);

}  // namespace plumb::cases
