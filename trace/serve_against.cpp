// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "trace/against_messages.h"
#include "trace/known_call.h"
#include "trace/step_worker.h"

namespace plumb::trace {

namespace {

// Keeps the file of the last request open for the next one.
class LastStep {
 public:
  const OpenStep& at(const std::string& path) {
    if (!open_ || open_->bytes.path() != path) open_.emplace(path);
    return *open_;
  }

 private:
  std::optional<OpenStep> open_;
};

RowDigests rows_of(const TraceCall& call, const StepBytes& bytes) {
  try {
    const KnownCall known(call, bytes);
    const auto rows = cases::CallRows::of(known.call());
    if (rows) return {rows->inputs(), rows->outputs()};
  } catch (...) {  // the call is not a valid call of the op, so it has no rows
    why_not_judged();
  }
  return {};
}

}  // namespace

int serve_outlines() {
  return serve_steps<OutlineRequest, OutlineAnswer>(
      [](const OutlineRequest& request, OutlineAnswer& answer) {
        answer.outline = outline_of(OpenStep(request.path).step, request.path);
      });
}

int serve_rows() {
  LastStep last;
  return serve_steps<RowsRequest, RowsAnswer>([&](const RowsRequest& request, RowsAnswer& answer) {
    const OpenStep& open = last.at(request.path);
    for (const std::size_t call : request.calls) {
      answer.rows.push_back(rows_of(open.step.calls.at(call), open.bytes));
    }
  });
}

int serve_pairs() {
  LastStep last_a, last_b;
  return serve_steps<PairRequest, PairAnswer>([&](const PairRequest& request, PairAnswer& answer) {
    const OpenStep &a = last_a.at(request.path_a), &b = last_b.at(request.path_b);
    answer.report = compare_pair(a.step.calls.at(request.a), a.bytes, b.step.calls.at(request.b),
                                 b.bytes, request.pairs);
  });
}

}  // namespace plumb::trace
