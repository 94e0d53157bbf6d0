// SPDX-License-Identifier: Apache-2.0
//
// A call of a decode step with what judges it, and where on the device each of its tensors lies.
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

// Where the tensors of a call are this time.
std::vector<Binding> bindings_of(const device::decode::Call& call,
                                 const device::decode::Geometry& geometry);
// Ends the name of what a tensor held before, where an op changes it in place.
inline constexpr std::string_view kBefore = "_before";
// What a tensor that an op changes in place held before ("cache_before") is where the tensor is.
const Binding* find_binding(const std::vector<Binding>& bindings, std::string_view name);

struct JudgedCall {
  std::string op;
  Row row;                           // of the op
  std::unique_ptr<Problem> problem;  // none: what stands beside ops
  std::unique_ptr<PlaceholderReference> placeholder;
  plumb_numerics declared = {};             // of the implementation, for this call
  std::vector<std::string> unconventional;  // constants that are not the model's, a line each
  std::vector<Binding> bindings;            // of this call

  // As large as the call has them. Throws std::logic_error for one that nobody says the place of.
  TensorSet make_tensors() const;
  Step step() const;  // padding included: what the contract says of it follows from the inputs
  Expectations expect(const TensorSet& tensors) const;
};
// `entry`: whose numerics and contract it is judged by. Null: plumb's defaults.
JudgedCall judged_call(const device::decode::Call& call, const device::OpEntry* entry,
                       const device::decode::Geometry& geometry,
                       const device::Properties& properties);

// Bytes from the first to the last of a tensor on the device.
std::size_t bytes_there(const HostTensor& tensor, const Binding& binding);
// The call's rows to the Problem's, which are as long or longer; and the other way round.
void unpack_rows(const std::byte* from, std::int64_t row_bytes, HostTensor& to);
void pack_rows(const Bytes& from, const HostTensor& layout, std::int64_t row_bytes, std::byte* to);

}  // namespace plumb::cases
