// SPDX-License-Identifier: Apache-2.0
#include "faults/lazy/op_scalars.h"

#include <algorithm>
#include <map>
#include <memory>
#include <variant>

namespace plumb::cases {

bool names(const std::vector<Formula>& formulas, const std::string& member) {
  const auto is = [&](const Formula& formula) { return formula.text() == member; };
  return std::ranges::any_of(formulas, is);
}

const TableScalar* find_scalar(const OpTable& table, const std::string& member) {
  for (const OpTable::Field& field : table.fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar != nullptr && scalar->member.name == member) return scalar;
  }
  return nullptr;
}

OpParams scalars_of(const OpTable& table, const Row& row, const device::Properties& platform) {
  OpParams params(table);
  table.set_scalars(row, &platform, params.data());
  table.spread(row, params.data());
  return params;
}

const device::Properties& properties_of(const std::string& platform) {
  static std::map<std::string, std::unique_ptr<device::Device>> devices;
  std::unique_ptr<device::Device>& device = devices[platform];
  if (!device) device = device::open_device(platform, {});
  return device->properties();
}

}  // namespace plumb::cases
