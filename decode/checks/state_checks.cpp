// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/state_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace plumb::cases {

void check_state(WatchedStep& step) {
  const auto& blocks = step.twin.engine.memory().blocks();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::byte* const first = blocks[b].address;
    if (std::memcmp(step.after[b].data(), step.before[b].data(), blocks[b].bytes) == 0) continue;
    for (const ByteRange& gap : step.writers.untouched({first, first + blocks[b].bytes})) {
      const auto now = step.after[b].begin() + (gap.begin - first);
      const auto end = step.after[b].begin() + (gap.end - first);
      const auto changed = std::mismatch(now, end, step.before[b].begin() + (gap.begin - first));
      if (changed.first == end) continue;
      step.findings.add(Detector::state, step.calls, "", "",
                        fmt::format("{} changed at byte {}: no call of the step writes there",
                                    blocks[b].label, changed.first - step.after[b].begin()));
      break;
    }
  }
}

}  // namespace plumb::cases
