// SPDX-License-Identifier: Apache-2.0
//
// The contract that an implementation declares: values of the op's choices (questions that right
// kernels answer differently), as "floor=1e-10 ties=even". The implementation's cases run under
// these values, which override the rows' values. Choices that the contract does not name keep each
// row's value, which is passed in the launch parameters.
#pragma once

#include <stdexcept>
#include <string_view>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "device/op_entry.h"

namespace plumb::cases {

// The message is one line: the op, the bad word, and the allowed words.
class BadContract : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws BadContract for an unknown choice, an unknown value, or a choice named twice.
Row under_contract(const OpDefinition& op, std::string_view contract, Row row);
// The case under the contract that the implementation's entry declares. Unchanged if the
// implementation has no entry for the op.
Case under_contract(const device::Implementation& implementation, Case which);

// Checks the contracts of all entries that belong to plumb's ops. Throws BadContract.
void check_contracts(const device::Implementation& implementation);

}  // namespace plumb::cases
