// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/call_digests.h"

#include <fmt/format.h>

#include <algorithm>

#include "decode/checks/compare.h"

namespace plumb::cases {

void add_digests(const WatchedStep& step, CallDigests& digests) {
  if (!step.findings.all().empty()) return;
  const CallRecorder& recorder = *step.twin.recorder;
  const std::int64_t attended = step.plans.back().attended;
  std::vector<CallDigest>& calls = digests.emplace_back();
  for (const device::decode::StepPart& part : step.parts) {
    for (const auto& call : recorder.enqueued(part)) {
      const TokenRows defined{part.tokens, std::min(attended, part.tokens)};
      calls.push_back(
          {fmt::format("{} ({})", call->op, call->place.name), promised_digest(*call, defined)});
    }
  }
}

}  // namespace plumb::cases
