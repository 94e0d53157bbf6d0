// SPDX-License-Identifier: Apache-2.0
//
// Which row tells the values of a choice apart: plumb's own kernel does one value, whatever its
// parameters say, and is judged under another.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

// A kernel that does the value `of` runs the cases of a contract that says `under`.
struct ContractPair {
  std::string choice, of, under;
  // The cheapest case that fails by values, or else the cheapest that fails. No op: there is none.
  Case separated_by = {};
  CaseResult failure = {};      // of that case
  std::string why_unseparated;  // as the choice says

  bool is_separated() const { return separated_by.op != nullptr; }
};

// How the kernel of a pair runs a case.
RunOptions with_kernel_of(const ContractPair& pair, const std::string& platform);

// All pairs of all choices of an op. `cases`: those of tier full and of drawn rows are left out.
// Cases are tried until one fails, first those whose rows name one of the values, cheap ones before
// others. A pair that is marked as not separated is tried on eager cases, as many as are cheap.
std::vector<ContractPair> contract_pairs(const OpDefinition& op, const std::vector<Case>& cases,
                                         const std::string& platform);

// A line for each pair that no row separates and no mark excuses, and for each that has both.
std::vector<std::string> objections(const OpDefinition& op, const std::vector<ContractPair>& pairs);

// A section of docs/operations/contracts.md; "" for an op without choices. And the page, which runs
// all that.
std::string contract_section(const OpDefinition& op, const std::vector<ContractPair>& pairs);
std::string contract_page();
// The platform of the page.
inline constexpr const char* kContractPlatform = "sim-sm90";

}  // namespace plumb::cases
