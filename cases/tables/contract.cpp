// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "cases/tables/case_file.h"
#include "device/device.h"

namespace plumb::cases {

namespace {

void check_choice(const OpDefinition& op, const std::string& name) {
  std::vector<std::string> names;
  for (const ContractChoice& choice : op.choices) names.emplace_back(choice.name);
  if (std::ranges::find(names, name) != names.end()) return;
  const std::string nearest = nearest_name(name, names);
  throw BadContract(
      fmt::format("{}: there is no choice \"{}\"{}", op.name, name,
                  nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

}  // namespace

Row under_contract(const OpDefinition& op, std::string_view contract, Row row) {
  std::istringstream words{std::string(contract)};
  std::set<std::string> seen;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    check_choice(op, name);
    if (equals == std::string::npos) {
      throw BadContract(fmt::format("{}: write {}=value", op.name, name));
    }
    if (!seen.insert(name).second) {
      throw BadContract(fmt::format("{}: {} is declared twice", op.name, name));
    }
    try {
      op.check_word(name, word.substr(equals + 1), op.name);
    } catch (const BadRow& error) {
      throw BadContract(error.what());
    }
    row.words[name] = word.substr(equals + 1);
  }
  row.contract = contract;
  return row;
}

Case under_contract(const device::Implementation& implementation, Case which) {
  const device::OpEntry* entry = device::find_entry(implementation, which.op->name);
  if (entry != nullptr && !entry->contract.empty()) {
    which.row = under_contract(*which.op, entry->contract, std::move(which.row));
  }
  return which;
}

void check_contracts(const device::Implementation& implementation) {
  for (const device::OpEntry& entry : implementation.entries) {
    if (!entry.contract.empty()) under_contract(find_op(entry.op), entry.contract, {});
  }
}

}  // namespace plumb::cases
