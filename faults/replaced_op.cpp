// SPDX-License-Identifier: Apache-2.0
#include "faults/replaced_op.h"

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

namespace {

// A table with one entry replaced, kept alive as long as somebody can call it.
struct ReplacedTable {
  std::vector<plumb_op_entry> entries;
  plumb_implementation table;
};

using Entries = std::vector<plumb_op_entry>;
using Change = std::function<void(std::string_view platform, Entries& entries)>;

Implementations with_entries(const Implementations& base, const Change& change) {
  return [base, change, tables = std::make_shared<std::vector<std::shared_ptr<ReplacedTable>>>()](
             std::string_view platform, bool checked) -> const plumb_implementation& {
    const plumb_implementation& original =
        base ? base(platform, checked) : device::builtin_implementation(platform);
    auto replaced = std::make_shared<ReplacedTable>();
    replaced->entries.assign(original.entries, original.entries + original.entry_count);
    change(platform, replaced->entries);
    replaced->table = original;
    replaced->table.name = "mutant";
    replaced->table.entries = replaced->entries.data();
    replaced->table.entry_count = static_cast<std::int32_t>(replaced->entries.size());
    tables->push_back(replaced);
    return replaced->table;
  };
}

}  // namespace

Implementations with_op_replaced(const Replacement& by, const Implementations& base) {
  return with_entries(base, [by](std::string_view platform, Entries& entries) {
    const plumb_op_entry& entry = platform.starts_with("cuda-") ? by.cuda : by.simulated;
    for (plumb_op_entry& one : entries) {
      if (std::string_view(one.op) == entry.op) one = entry;
    }
  });
}

Implementations with_op_left_out(std::string_view op, const Implementations& base) {
  return with_entries(base, [op = std::string(op)](std::string_view, Entries& entries) {
    std::erase_if(entries, [&](const plumb_op_entry& one) { return one.op == op; });
  });
}

}  // namespace plumb::cases
