// SPDX-License-Identifier: Apache-2.0
//
// Scalars of an op's table, and their values in the launches of a row.
#pragma once

#include <string>
#include <vector>

#include "cases/tables/op_table.h"
#include "cases/tables/row.h"
#include "device/device.h"

namespace plumb::cases {

// Whether one of the formulas is this member alone.
bool names(const std::vector<Formula>& formulas, const std::string& member);

// Null if the table has no scalar of this name.
const TableScalar* find_scalar(const OpTable& table, const std::string& member);

// The scalars of a row, as a launch gets them.
OpParams scalars_of(const OpTable& table, const Row& row, const device::Properties& platform);

// Of a device that is opened once.
const device::Properties& properties_of(const std::string& platform);

}  // namespace plumb::cases
