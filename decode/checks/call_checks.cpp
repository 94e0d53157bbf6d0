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
#include "decode/checks/flow_checks.h"
#include "decode/checks/input_checks.h"
#include "decode/checks/kernel_plans.h"

namespace plumb::cases {

namespace {

using device::decode::StepPart;
using Recording = CallRecorder::CallRecording;

// Calls of a part in another engine, found by their place: a run may leave one out.
class OtherCalls {
 public:
  explicit OtherCalls(const CallRecorder::Calls& calls) : calls_(calls) {}

  // nullptr: there is none behind the one that was found last.
  const Recording* find(const Recording& call) {
    const auto found = std::find_if(next(), calls_.end(), [&](const auto& one) {
      return one->op == call.op && one->place.name == call.place.name;
    });
    passed_over_ = nullptr;
    if (found == calls_.end()) return nullptr;
    if (found != next()) passed_over_ = next()->get();
    next_ = found - calls_.begin() + 1;
    return found->get();
  }
  // The first call between the last two that find() returned: this engine makes it, the other
  // leaves it out. nullptr: there is none.
  const Recording* passed_over() const { return passed_over_; }
  // The first one behind them.
  const Recording* left() const { return next() == calls_.end() ? nullptr : next()->get(); }

 private:
  CallRecorder::Calls::const_iterator next() const { return calls_.begin() + next_; }

  const CallRecorder::Calls& calls_;
  std::ptrdiff_t next_ = 0;
  const Recording* passed_over_ = nullptr;
};

class CallChecks {
 public:
  explicit CallChecks(WatchedStep& step) : step_(step), inputs_(planned_inputs(step.twin)) {}

  // A part that ran on another number of rows than in the eager engine is not compared call by
  // call.
  void check(const StepPart& part) {
    const std::optional<StepPart> enqueued = step_.twin.recorder->latest(part.name);
    if (!part.replayed && enqueued && enqueued->tokens != part.tokens) {
      const auto& calls = step_.eager.recorder->fetch(part);
      find(Detector::eager, *calls.front(),
           fmt::format("{} runs on {} tokens, but on {} in the eager step", part.name,
                       enqueued->tokens, part.tokens));
      step_.calls += std::ssize(calls);
      return;
    }
    const CallRecorder::Calls& twin = step_.twin.recorder->fetch(part);
    if (part.kept) return check_kept(twin, part);
    OtherCalls eager(step_.eager.recorder->fetch(part, CallRecorder::Read::outputs));
    OtherCalls other(step_.other.recorder->fetch(part));
    bool same = true;
    eager_is_whole_ = false;
    for (const auto& call : twin) {
      const Recording* const eagerly = eager.find(*call);
      if (eager.passed_over() != nullptr) miss(*eager.passed_over());
      if (eagerly == nullptr) find(Detector::path, *call, "no call of the eager step");
      const bool right = check_alone(*call, part);
      if (same && eagerly != nullptr) same = is_the_eager_one(*call, *eagerly, part, right);
      step_.writers.note(*call, step_.calls);
      if (eagerly != nullptr) eager_writers_.note(*eagerly, step_.calls);
      const Recording* const padded = other.find(*call);
      if (padding_is_clean_ && padded != nullptr) {
        padding_is_clean_ = is_free_of_padding(*padded, *call, part);
      }
      ++step_.calls;
    }
    if (eager.left() != nullptr) miss(*eager.left());
  }

 private:
  // A part that other engines may take the step without.
  void check_kept(const CallRecorder::Calls& calls, const StepPart& part) {
    for (const auto& call : calls) {
      check_alone(*call, part);
      step_.writers.note(*call, step_.calls++);
    }
  }

  // What needs no other engine. Whether the call is right on the bytes that it was given.
  bool check_alone(const Recording& call, const StepPart& part) {
    if (part.replayed) check_addresses(call, step_);
    check_inputs_of(call, inputs_, step_);
    check_flow(call, step_);
    check_conventions(call);
    check_top_k(call);
    check_candidates(call);
    check_kernel_plan(call);
    check_compressed_slots(call);
    return judge(call, part);
  }

  void miss(const Recording& call) {
    find(Detector::path, call, "left out: the eager step makes this call");
  }

  // Of a planner that has not run, or on other lengths: it may be right on what it was given.
  void check_kernel_plan(const Recording& call) {
    const WatchedEngine& twin = step_.twin;
    auto wrong = wrong_kernel_plan(call, plan(), twin.engine.geometry(), twin.device->properties());
    if (!wrong) return;
    step_.findings.add(Detector::metadata, step_.calls, wrong->op, call.place.name, wrong->text);
  }

  // Of a step whose tokens read no metadata, the slots are those of an earlier step.
  void check_compressed_slots(const Recording& call) {
    if (call.op != "compress_norm_rope_insert" || plan().attended == 0) return;
    const auto wrong = wrong_compressed_slot(call, plan(), step_.twin.engine.geometry());
    if (!wrong) return;
    step_.findings.add(Detector::metadata, step_.calls, "compressed_slot_mapping", call.place.name,
                       *wrong);
  }

  void check_conventions(const Recording& call) {
    for (const std::string& line : call.unconventional) find(Detector::convention, call, line);
  }

  void check_top_k(const Recording& call) {
    const auto wrong = wrong_top_k(call, plan(), step_.twin.engine.geometry());
    if (!wrong) return;
    step_.findings.add(Detector::candidates, step_.calls, wrong->op, call.place.name, wrong->text);
  }

  // Blames the op that wrote the wrong list in an earlier step, if no call of this step wrote it.
  void check_candidates(const Recording& call) {
    const bool prefill = call.op == "sparse_mla_prefill";
    if (!prefill && call.op != "sparse_mla_decode") return;
    const auto& engine = step_.twin.engine;
    const auto line = prefill ? wrong_prefill_candidates(call, engine.plan(), engine.geometry())
                              : wrong_candidates(call, engine.plan(), engine.geometry());
    if (!line) return;
    const std::string* writer = stale_list(call);
    if (writer == nullptr) {
      find(Detector::candidates, call, *line);
      return;
    }
    step_.findings.add(Detector::candidates, 0, *writer, call.place.name,
                       *line + "; no call of this step has written this list");
  }

  // The op that wrote one of the call's candidate lists in an earlier step, if no call of this step
  // wrote that list. nullptr: there is no such list.
  const std::string* stale_list(const Recording& call) const {
    for (const char* name : {"main_indices", "main_indptr", "main_lengths", "extra_indices",
                             "extra_indptr", "extra_lengths"}) {
      for (const CallRecorder::TensorCopy& copy : call.copies) {
        if (copy.tensor != name || step_.writers.latest(copy.from) != nullptr) continue;
        if (const std::string* writer = step_.twin.recorder->last_writer(copy.from)) return writer;
      }
    }
    return nullptr;
  }

  // Inputs that no row of the op describes are wrong too.
  bool judge(const Recording& call, const StepPart& part) {
    try {
      return is_right(call, part);
    } catch (const BadRow& bad) {
      find(Detector::reference, call, bad.what());
      return false;
    }
  }

  bool is_right(const Recording& call, const StepPart& part) {
    bool right = true;
    if (call.is_foreign()) {
      find(Detector::path, call,
           "the implementation has no such op: another implementation's op ran");
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

  // Whether the outputs equal those of the eager step. (Padding rows after an attention that ran on
  // live rows only are older than the step, so they may differ.) A call that is right on its inputs
  // may have read other inputs than in the eager step. Then the writer of these inputs is blamed.
  bool is_the_eager_one(const Recording& call, const Recording& eager, const StepPart& part,
                        bool right) {
    if (have_same_outputs(call, eager)) return true;
    // The promised elements follow from the inputs, so these are fetched too.
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
        fmt::format(
            "the input of {}, {}, differs from the output of this call in the eager step; its {}",
            call.place.name, input->tensor, *line));
    return false;
  }

  // The call that wrote the input in the replay. If no call of this step did, the call that wrote
  // the input of the eager step.
  const StepWriters::Writer* writer_of(const DifferentInput& input) const {
    const auto* const writer = step_.writers.latest(input.got);
    return writer != nullptr ? writer : eager_writers_.latest(input.expected);
  }

  bool is_free_of_padding(const Recording& other, const Recording& call, const StepPart& part) {
    const auto line = live_row_difference(other, call, first_rows(part, plan().live_tokens));
    if (line) find(Detector::padding, call, *line);
    return !line;
  }

  const device::decode::StepPlan& plan() const { return step_.twin.engine.plan(); }

  static TokenRows first_rows(const StepPart& part, std::int64_t count) {
    return {part.tokens, std::min(count, part.tokens)};
  }

  void find(Detector detector, const Recording& call, const std::string& text) {
    step_.findings.add(detector, step_.calls, call.op, call.place.name, text);
  }

  WatchedStep& step_;
  const std::vector<PlannedInput> inputs_;
  StepWriters eager_writers_;
  bool eager_is_whole_ = false;  // whether this part of the eager step was fetched with inputs
  bool padding_is_clean_ = true;
};

}  // namespace

std::int64_t check_calls(WatchedStep& step) {
  CallChecks checks(step);
  for (const StepPart& part : step.twin.engine.parts()) checks.check(part);
  return step.calls;
}

}  // namespace plumb::cases
