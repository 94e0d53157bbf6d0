// SPDX-License-Identifier: Apache-2.0
//
// A call of a decode step as a case has it: the row of the op with the call's shapes, and where
// each of its tensors lies. Both follow from the op's table. With them the op's own Problem judges
// what the call did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/tables/row.h"
#include "decode/engine/calls.h"
#include "decode/engine/geometry.h"

namespace plumb::cases {

struct Binding {
  std::string tensor;  // as the op's Problem names it
  const void* address = nullptr;
  // Where the call's tensor has more rows, or rows further apart, than the Problem's.
  std::int64_t rows = 0;       // 0: as many
  std::int64_t row_bytes = 0;  // 0: as far apart
};

struct OpDefinition;

struct CallRecord {
  Row row;
  std::vector<Binding> bindings;
};

// Throws std::invalid_argument for a call that no row of the op describes.
CallRecord record_of(const OpDefinition& op, const void* params,
                     const device::decode::Geometry& geometry);

// Nothing for a placeholder (device/kernels/placeholders/placeholder_kernels.h). Throws
// std::invalid_argument for an unknown op, RefusedCall for a call that no row of the op describes.
std::optional<CallRecord> record_of(const device::decode::Call& call,
                                    const device::decode::Geometry& geometry);

}  // namespace plumb::cases
