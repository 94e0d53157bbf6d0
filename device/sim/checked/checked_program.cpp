// SPDX-License-Identifier: Apache-2.0
//
// Finds the constants of the running program, which kernels may read like constant data of a GPU.
#include <link.h>

#include <vector>

#include "device/sim/checked/checked.h"

namespace plumb::device::sim {

namespace {

struct ProgramSpan {
  std::uintptr_t begin, end;
};

int add_spans(dl_phdr_info* info, std::size_t, void* spans) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    static_cast<std::vector<ProgramSpan>*>(spans)->push_back({begin, begin + segment.p_memsz});
  }
  return 0;
}

bool any_holds(const std::vector<ProgramSpan>& spans, std::uintptr_t address) {
  for (const ProgramSpan& span : spans)
    if (address - span.begin < span.end - span.begin) return true;
  return false;
}

}  // namespace

// Searches again after a miss, because a plug-in may have been loaded meanwhile.
bool is_program_data(std::uintptr_t address) {
  static thread_local std::vector<ProgramSpan> spans;
  if (any_holds(spans, address)) return true;
  spans.clear();
  dl_iterate_phdr(&add_spans, &spans);
  return any_holds(spans, address);
}

}  // namespace plumb::device::sim
