// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <new>
#include <optional>

#include "process/worker.h"
#include "trace/trace_messages.h"

namespace plumb::trace {

namespace {

struct OpenStep {
  StepBytes bytes;
  TraceStep step;

  explicit OpenStep(const std::string& path) : bytes(path), step(parse_step(bytes.text(), path)) {}
};

CallsAnswer answer_to(const CallsRequest& request, std::optional<OpenStep>& open) {
  CallsAnswer answer;
  try {
    if (!open || open->bytes.path() != request.path) open.emplace(request.path);
    const TraceStep& step = open->step;
    answer.calls = std::ssize(step.calls);
    answer.rank = step.rank;
    answer.step = step.step;
    answer.provenance = step.provenance;
    const cases::RowSampling sampling{.most = request.most_rows, .budget = request.budget};
    for (std::int64_t i = request.begin; i < request.end; ++i) {
      answer.reports.push_back(
          judge_call(step, static_cast<std::size_t>(i), open->bytes, sampling));
    }
  } catch (const BadTrace& error) {
    answer.refused = error.what();
  } catch (const std::bad_alloc&) {
    answer.refused = request.path + ": needs too much memory";
  }
  return answer;
}

}  // namespace

int serve_trace_calls() {
  const rlimit nothing{0, 0};
  setrlimit(RLIMIT_FSIZE, &nothing);  // a worker writes no file
  setrlimit(RLIMIT_CORE, &nothing);
  std::optional<OpenStep> open;
  return process::serve([&](const process::WorkerRequest& request) {
    return process::encode(answer_to(process::decode<CallsRequest>(request.body), open));
  });
}

}  // namespace plumb::trace
