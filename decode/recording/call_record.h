// SPDX-License-Identifier: Apache-2.0
//
// A call of a decode step as a row of the op's cases: a Row with the call's shapes, and the address
// of each tensor. Both follow from the op's table. With them the op's own Problem judges the call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/tables/row.h"
#include "decode/engine/calls.h"
#include "decode/engine/geometry.h"

namespace plumb::cases {

struct Binding {
  std::string tensor;  // name in the op's Problem
  const void* address = nullptr;
  // Layout of the call's tensor, where it has more rows or a larger row distance than the
  // Problem's.
  std::int64_t rows = 0;       // 0: as the Problem's
  std::int64_t row_bytes = 0;  // distance of rows; 0: as the Problem's
};

struct OpDefinition;

struct CallRecord {
  Row row;
  std::vector<Binding> bindings;
};

// Throws std::invalid_argument if no row of the op describes the call.
CallRecord record_of(const OpDefinition& op, const void* params,
                     const device::decode::Geometry& geometry);

// nullopt for a placeholder (device/kernels/placeholders/placeholder_kernels.h). Throws
// std::invalid_argument for an unknown op, RefusedCall if no row of the op describes the call.
std::optional<CallRecord> record_of(const device::decode::Call& call,
                                    const device::decode::Geometry& geometry);

}  // namespace plumb::cases
