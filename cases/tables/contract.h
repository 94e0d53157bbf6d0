// SPDX-License-Identifier: Apache-2.0
//
// The contract that an implementation declares: values of an op's choices, "floor=1e-10 ties=even".
// Its cases run under these values, whatever their rows say. Choices that it does not name are
// those of each row, which the launch has in its parameters.
#pragma once

#include <stdexcept>
#include <string_view>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "device/op_entry.h"

namespace plumb::cases {

// One line: the op, the word, and what it could have been.
class BadContract : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws BadContract for a choice that the op has not, a value that the choice has not, and a
// choice that is named twice.
Row under_contract(const OpDefinition& op, std::string_view contract, Row row);
// By the entry of the case's op. Without an entry, as it is.
Case under_contract(const device::Implementation& implementation, Case which);

// Of all entries that are ops of plumb's. Throws BadContract.
void check_contracts(const device::Implementation& implementation);

}  // namespace plumb::cases
