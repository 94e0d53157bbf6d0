// SPDX-License-Identifier: Apache-2.0
#include "faults/replaced_op.h"

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

namespace {

using Entries = std::vector<device::OpEntry>;
using Change = std::function<void(std::string_view platform, Entries& entries)>;

Implementations with_entries(const Implementations& base, const Change& change) {
  return [base, change, tables = std::make_shared<std::list<device::Implementation>>()](
             std::string_view platform, bool checked) -> const device::Implementation& {
    const device::Implementation& original =
        base ? base(platform, checked) : device::builtin_implementation(platform);
    // Kept in the list, because the caller keeps a reference to it.
    device::Implementation& replaced = tables->emplace_back("mutant", original.entries);
    change(platform, replaced.entries);
    return replaced;
  };
}

}  // namespace

Implementations with_op_changed(std::string_view op, const EntryChange& change,
                                const Implementations& base) {
  return with_entries(base,
                      [op = std::string(op), change](std::string_view platform, Entries& entries) {
                        for (device::OpEntry& one : entries) {
                          if (one.op == op) change(platform, one);
                        }
                      });
}

Implementations with_op_replaced(const Replacement& by, const Implementations& base) {
  const auto replace = [by](std::string_view platform, device::OpEntry& entry) {
    const device::OpEntry& other = platform.starts_with("cuda-") ? by.cuda : by.simulated;
    if (other.launch != nullptr) entry = other;
  };
  return with_op_changed(by.simulated.op, replace, base);
}

Implementations with_op_left_out(std::string_view op, const Implementations& base) {
  return with_entries(base, [op = std::string(op)](std::string_view, Entries& entries) {
    std::erase_if(entries, [&](const device::OpEntry& one) { return one.op == op; });
  });
}

}  // namespace plumb::cases
