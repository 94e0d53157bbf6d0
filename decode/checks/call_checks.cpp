// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/call_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cases/tensors/fill.h"
#include "decode/checks/address_checks.h"
#include "decode/checks/candidates.h"
#include "decode/checks/compare.h"
#include "decode/checks/input_checks.h"

namespace plumb::cases {

namespace {

using device::decode::StepPart;

class CallChecks {
 public:
  explicit CallChecks(WatchedStep& step) : step_(step), inputs_(planned_inputs(step.twin)) {}

  // A part of the twin that has run on other rows than that of the eager engine is no such part.
  void check(const StepPart& part) {
    const std::optional<StepPart> enqueued = step_.twin.recorder->latest(part.name);
    if (!part.replayed && enqueued && enqueued->tokens != part.tokens) {
      const auto& calls = step_.eager.recorder->fetch(part);
      find(Detector::eager, *calls.front(),
           fmt::format("{} runs on {} tokens, in the eager step on {}", part.name, enqueued->tokens,
                       part.tokens));
      step_.calls += std::ssize(calls);
      return;
    }
    const CallRecorder::Calls& twin = step_.twin.recorder->fetch(part);
    const CallRecorder::Calls& eager =
        step_.eager.recorder->fetch(part, CallRecorder::Read::outputs);
    const CallRecorder::Calls& other = step_.other.recorder->fetch(part);
    bool same = true;
    eager_is_whole_ = false;
    for (std::size_t i = 0; i < twin.size(); ++i, ++step_.calls) {
      const CallRecorder::CallRecording& call = *twin[i];
      if (part.replayed) check_addresses(call, step_);
      check_inputs_of(call, inputs_, step_);
      check_conventions(call);
      check_top_k(call);
      check_candidates(call);
      const bool right = judge(call, part);
      if (same) same = is_the_eager_one(call, *eager.at(i), part, right);
      step_.writers.note(call, step_.calls);
      eager_writers_.note(*eager.at(i), step_.calls);
      if (padding_is_clean_) padding_is_clean_ = is_free_of_padding(*other.at(i), call, part);
    }
  }

 private:
  void check_conventions(const CallRecorder::CallRecording& call) {
    for (const std::string& line : call.unconventional) find(Detector::convention, call, line);
  }

  void check_top_k(const CallRecorder::CallRecording& call) {
    const auto wrong = wrong_top_k(call, plan(), step_.twin.engine.geometry());
    if (!wrong) return;
    step_.findings.add(Detector::candidates, step_.calls, wrong->op, call.place.name, wrong->text);
  }

  // Whoever made the list that is wrong, if one call did.
  void check_candidates(const CallRecorder::CallRecording& call) {
    if (call.op != "sparse_mla_decode") return;
    const auto& engine = step_.twin.engine;
    const auto line = wrong_candidates(call, engine.plan(), engine.geometry());
    if (!line) return;
    const std::string* writer = stale_list(call);
    if (writer == nullptr) {
      find(Detector::candidates, call, *line);
      return;
    }
    step_.findings.add(Detector::candidates, 0, *writer, call.place.name,
                       *line + "; no call of this step has written that list");
  }

  // Who wrote a list of candidates in an earlier step, and nobody in this one.
  const std::string* stale_list(const CallRecorder::CallRecording& call) const {
    for (const char* name : {"main_indices", "main_indptr", "main_lengths", "extra_indices",
                             "extra_indptr", "extra_lengths"}) {
      for (const CallRecorder::TensorCopy& copy : call.copies) {
        if (copy.tensor != name || step_.writers.latest(copy.from) != nullptr) continue;
        if (const std::string* writer = step_.twin.recorder->last_writer(copy.from)) return writer;
      }
    }
    return nullptr;
  }

  bool judge(const CallRecorder::CallRecording& call, const StepPart& part) {
    bool right = true;
    if (call.is_foreign()) {
      find(Detector::path, call, "the implementation has no such op: another one's has run");
      return right;
    }
    const auto seed = mix(static_cast<std::uint64_t>(step_.findings.step()), step_.calls);
    for (const TensorReport& report :
         step_.twin.recorder->judge(call, part, plan().live_tokens, seed)) {
      if (report.passed()) continue;
      right = false;
      find(Detector::reference, call,
           report.failures.front() + (report.pattern.empty() ? "" : "; " + report.pattern));
    }
    return right;
  }

  // Behind an attention that ran on live rows only, rows of padding are older than the step. A call
  // that is right on what it was given was given something else: then who should have made that is
  // to blame.
  bool is_the_eager_one(const CallRecorder::CallRecording& call,
                        const CallRecorder::CallRecording& eager, const StepPart& part,
                        bool right) {
    if (have_same_outputs(call, eager)) return true;
    // What is promised follows from the inputs.
    if (!std::exchange(eager_is_whole_, true)) step_.eager.recorder->fetch(part);
    const auto line = output_difference(call, eager, first_rows(part, plan().attended));
    if (!line) return true;
    const auto input = right ? different_input(call, eager) : std::nullopt;
    const auto* const writer = input ? writer_of(*input) : nullptr;
    if (writer == nullptr) {
      find(Detector::eager, call, *line);
      return false;
    }
    step_.findings.add(
        Detector::eager, writer->position, writer->op, writer->call,
        fmt::format("what {} reads as {} is not what this call made in the eager step; its {}",
                    call.place.name, input->tensor, *line));
    return false;
  }

  // Of what the replay read; if no call of the step has written there, whoever wrote what the eager
  // step read instead.
  const StepWriters::Writer* writer_of(const DifferentInput& input) const {
    const auto* const writer = step_.writers.latest(input.got);
    return writer != nullptr ? writer : eager_writers_.latest(input.expected);
  }

  bool is_free_of_padding(const CallRecorder::CallRecording& other,
                          const CallRecorder::CallRecording& call, const StepPart& part) {
    const auto line = live_row_difference(other, call, first_rows(part, plan().live_tokens));
    if (line) find(Detector::padding, call, *line);
    return !line;
  }

  const device::decode::StepPlan& plan() const { return step_.twin.engine.plan(); }

  static TokenRows first_rows(const StepPart& part, std::int64_t count) {
    return {part.tokens, std::min(count, part.tokens)};
  }

  void find(Detector detector, const CallRecorder::CallRecording& call, const std::string& text) {
    step_.findings.add(detector, step_.calls, call.op, call.place.name, text);
  }

  WatchedStep& step_;
  const std::vector<PlannedInput> inputs_;
  StepWriters eager_writers_;
  bool eager_is_whole_ = false;  // read back with its inputs, of this part
  bool padding_is_clean_ = true;
};

}  // namespace

std::int64_t check_calls(WatchedStep& step) {
  CallChecks checks(step);
  for (const StepPart& part : step.twin.engine.parts()) checks.check(part);
  return step.calls;
}

}  // namespace plumb::cases
