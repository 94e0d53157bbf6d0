// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "trace/step_worker.h"
#include "trace/trace_messages.h"

namespace plumb::trace {

namespace {

void answer_calls(const CallsRequest& request, std::optional<OpenStep>& open, CallsAnswer& answer) {
  if (!open || open->bytes.path() != request.path) open.emplace(request.path);
  const TraceStep& step = open->step;
  answer.calls = std::ssize(step.calls);
  answer.rank = step.rank;
  answer.step = step.step;
  answer.provenance = step.provenance;
  const cases::RowSampling sampling{.most = request.most_rows, .budget = request.budget};
  for (std::int64_t i = request.begin; i < request.end; ++i) {
    answer.reports.push_back(judge_call(step, static_cast<std::size_t>(i), open->bytes, sampling));
  }
}

}  // namespace

int serve_trace_calls() {
  std::optional<OpenStep> open;
  return serve_steps<CallsRequest, CallsAnswer>(
      [&](const CallsRequest& request, CallsAnswer& answer) {
        answer_calls(request, open, answer);
      });
}

}  // namespace plumb::trace
