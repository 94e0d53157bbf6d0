// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/lazy_hypotheses.h"

#include <fmt/format.h>

#include <vector>

#include "cases/tensors/sort_by.h"

namespace plumb::cases {

namespace {

// False for lazy kernels that may reach outside the tensors: those that assume the usual value
// (`common`) of an integer, because a larger stride or size than the case's would do so. Also false
// for `first_call`, because one failed launch does not say what the process launched first.
bool stays_within(const LazyKernel& kernel) {
  if (kernel.kind == LazyKind::first_call) return false;
  return kernel.kind != LazyKind::common || kernel.real != 0;
}

}  // namespace

std::vector<LazyKernel> lazy_hypotheses(const Case& which, const std::string& platform) {
  if (which.op->table == nullptr) return {};
  std::vector<LazyKernel> all = lazy_kernels(*which.op);
  const std::vector<LazyKernel> near = near_values(which, platform);
  all.insert(all.end(), near.begin(), near.end());
  std::erase_if(all, [&](const LazyKernel& kernel) {
    return !stays_within(kernel) || !can_differ(kernel, which, platform);
  });
  // Kernels that leave out an output come first: they are a simpler explanation than a wrong size.
  sort_by(all, [](const LazyKernel& kernel) {
    return kernel.kind < LazyKind::last_row || kernel.kind > LazyKind::last_element;
  });
  return all;
}

bool may_leave(const LazyKernel& kernel) { return kernel.kind == LazyKind::one_more; }

std::string meaning_of(const LazyKernel& kernel) {
  const std::string& member = kernel.member;
  switch (kernel.kind) {
    case LazyKind::common: return fmt::format("uses {:.6g} instead of {}", kernel.real, member);
    case LazyKind::first_call: return fmt::format("keeps {} from its first launch", member);
    case LazyKind::dense: return fmt::format("ignores {}: assumes a contiguous tensor", member);
    case LazyKind::rounded_down:
      return fmt::format("rounds {} down to a multiple of {}: skips the tail", member,
                         kernel.number);
    case LazyKind::one_less:
      return fmt::format("uses {} = {} instead of {}", member, kernel.number, kernel.number + 1);
    case LazyKind::one_more:
      return fmt::format("uses {} = {} instead of {}", member, kernel.number, kernel.number - 1);
    case LazyKind::zero: return fmt::format("uses 0 instead of {}", member);
    case LazyKind::one: return fmt::format("uses 1 instead of {}", member);
    case LazyKind::squared:
      return fmt::format("uses the square of {0}, or adds {0} outside a square root", member);
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
    // No hypotheses: real kernels misread these values in many ways.
    case LazyKind::below_minus_one:
    case LazyKind::nan:
    case LazyKind::unusual_nan:
    case LazyKind::infinity:
    case LazyKind::negative_zero: break;
  }
  return "";
}

}  // namespace plumb::cases
