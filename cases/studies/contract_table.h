// SPDX-License-Identifier: Apache-2.0
//
// Finds, for each two values of a choice (a question that right kernels answer differently), a row
// that separates them: plumb's own kernel computes one value, whatever its parameters say, and is
// judged under the other.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// A kernel that computes the value `of` runs cases under a contract that says `under`.
struct ContractPair {
  std::string choice, of, under;
  // The first tried case that fails by values, otherwise the first that fails in another way. `op`
  // is null if no case fails.
  Case separated_by = {};
  CaseResult failure = {};      // result of separated_by
  std::string why_unseparated;  // reason given by the choice, if it marks the pair

  bool is_separated() const { return separated_by.op != nullptr; }
};

// Options under which a case is launched with the pair's kernel `of`.
RunOptions with_kernel_of(const ContractPair& pair, const std::string& platform);

// All pairs of all choices of an op. `cases`: cases of tier full and of random rows are skipped.
// For each pair, cases are tried until one fails by values: eager cases before graph cases, then
// rows that name one of the values, then cheap ones. A pair marked as unseparated is tried on eager
// cases up to a cost limit.
std::vector<ContractPair> contract_pairs(const OpDefinition& op, const std::vector<Case>& cases,
                                         const std::string& platform);

// A line for each pair that no row separates although it is not marked, and for each marked pair
// that a row separates.
std::vector<std::string> objections(const OpDefinition& op, const std::vector<ContractPair>& pairs);

// contract_section: an op's section of docs/operations/contracts.md; "" without choices.
// contract_page: the whole page; runs the cases of all ops.
std::string contract_section(const OpDefinition& op, const std::vector<ContractPair>& pairs);
std::string contract_page();
// The platform that the page is made on.
inline constexpr const char* kContractPlatform = "sim-sm90";

}  // namespace plumb::cases
