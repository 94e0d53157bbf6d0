// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/lazy_hypotheses.h"

#include <fmt/format.h>

#include <vector>

#include "cases/tensors/sort_by.h"

namespace plumb::cases {

namespace {

// A stride or a size that is larger than the case's would reach outside the tensors. The first
// launch of a process is no part of one failed launch.
bool stays_within(const LazyKernel& kernel) {
  if (kernel.kind == LazyKind::first_call) return false;
  return kernel.kind != LazyKind::common || kernel.real != 0;
}

}  // namespace

std::vector<LazyKernel> lazy_hypotheses(const Case& which, const std::string& platform) {
  if (which.op->table == nullptr) return {};
  std::vector<LazyKernel> all = lazy_kernels(*which.op);
  std::erase_if(all, [&](const LazyKernel& kernel) {
    return !stays_within(kernel) || !can_differ(kernel, which, platform);
  });
  // What is not written is plainer than a size that is taken for another one.
  sort_by(all, [](const LazyKernel& kernel) {
    return kernel.kind < LazyKind::last_row || kernel.kind > LazyKind::last_element;
  });
  return all;
}

std::string meaning_of(const LazyKernel& kernel) {
  const std::string& member = kernel.member;
  switch (kernel.kind) {
    case LazyKind::common: return fmt::format("takes {:.6g} for {}", kernel.real, member);
    case LazyKind::first_call: return fmt::format("keeps {} of its first launch", member);
    case LazyKind::dense: return fmt::format("ignores {}: takes the tensor for contiguous", member);
    case LazyKind::rounded_down:
      return fmt::format("rounds {} down to a multiple of {}: leaves the tail out", member,
                         kernel.number);
    case LazyKind::absent: return fmt::format("ignores {}", member);
    case LazyKind::zeros: return fmt::format("reads zeros for {}", member);
    case LazyKind::first_row: return fmt::format("reads the first row of {} for every row", member);
    case LazyKind::largest:
      return fmt::format("reads the largest element of {} for every element", member);
    case LazyKind::last_row: return fmt::format("does not write the last row of {}", member);
    case LazyKind::last_column: return fmt::format("does not write the last column of {}", member);
    case LazyKind::last_element:
      return fmt::format("does not write the last element of {}", member);
    case LazyKind::int32_offsets: return fmt::format("counts elements of {} in 32 bits", member);
    case LazyKind::uint32_bytes: return fmt::format("counts bytes of {} in 32 bits", member);
  }
  return "";
}

}  // namespace plumb::cases
