// SPDX-License-Identifier: Apache-2.0
#include "cases/faults/replaced_op.h"

#include <memory>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

namespace {

// A table with one entry replaced, kept alive as long as somebody can call it.
struct ReplacedTable {
  std::vector<plumb_op_entry> entries;
  plumb_implementation table;
};

std::shared_ptr<ReplacedTable> replace_entry(const plumb_implementation& original,
                                             const plumb_op_entry& entry) {
  auto replaced = std::make_shared<ReplacedTable>();
  replaced->entries.assign(original.entries, original.entries + original.entry_count);
  for (plumb_op_entry& one : replaced->entries) {
    if (std::string_view(one.op) == entry.op) one = entry;
  }
  replaced->table = original;
  replaced->table.name = "mutant";
  replaced->table.entries = replaced->entries.data();
  return replaced;
}

}  // namespace

Implementations with_op_replaced(const Replacement& by) {
  return [by, tables = std::make_shared<std::vector<std::shared_ptr<ReplacedTable>>>()](
             std::string_view platform, bool) -> const plumb_implementation& {
    const plumb_op_entry& entry = platform.starts_with("cuda-") ? by.cuda : by.simulated;
    tables->push_back(replace_entry(device::builtin_implementation(platform), entry));
    return tables->back()->table;
  };
}

}  // namespace plumb::cases
