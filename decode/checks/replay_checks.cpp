// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/replay_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "decode/metadata/plan_key.h"

namespace plumb::cases {

namespace {

using device::decode::GraphKind;
using device::decode::GraphMode;
using device::decode::ModelRunner;
using Names = std::vector<std::string>;

std::vector<std::byte> live_rows(const WatchedEngine& watched, const std::uint16_t* out) {
  const auto& engine = watched.engine;
  const std::int64_t elements = engine.plan().live_tokens * engine.geometry().hidden;
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * sizeof(std::uint16_t));
  watched.device->copy(bytes.data(), out, bytes.size(), engine.stream());
  return bytes;
}

void compare_results(const char* whose, const std::uint16_t* plain, const std::uint16_t* twin,
                     WatchedStep& step) {
  if (live_rows(step.plain, plain) == live_rows(step.twin, twin)) return;
  step.findings.add(
      Detector::twin, step.calls, "", "",
      fmt::format("the {} result of the unrecorded step differs from the recorded one", whose));
}

Names kernels(const std::vector<device::GraphNode>& nodes) {
  Names names;
  for (const device::GraphNode& node : nodes) {
    if (node.kind == "kernel") names.push_back(node.name);
  }
  return names;
}

void compare_kernels(const Names& graph, const Names& wanted, WatchedStep& step) {
  if (graph == wanted) return;
  const auto [g, w] = std::mismatch(graph.begin(), graph.end(), wanted.begin(), wanted.end());
  step.findings.add(Detector::path, step.calls, "", "",
                    fmt::format("the graph launches {} kernels, the eager step {}; first "
                                "difference: {} instead of {}",
                                graph.size(), wanted.size(), g == graph.end() ? "the end" : *g,
                                w == wanted.end() ? "the end" : *w));
}

// Skips a step that runs without graphs: it is larger than every captured size, or the mode does
// not capture such batches.
void check_runner(const ModelRunner& graphs, const ModelRunner& eager, WatchedStep& step) {
  const device::decode::StepPlan& plan = step.plain.engine.plan();
  const GraphKind kind = step.plain.engine.kind();
  if (kind == GraphKind::none) return;
  if (graphs.mode() == GraphMode::none) {
    step.findings.add(Detector::path, step.calls, "drafter", "drafter",
                      "the drafter runs without graphs, but its target has graphs");
    return;
  }
  compare_kernels(kernels(graphs.graphs(kind).nodes(graphs.key(kind, plan))),
                  kernels(eager.eager_nodes(kind, plan, ModelRunner::Which::captured)), step);
}

}  // namespace

// Looks at the first part of the step, which is captured in every mode.
bool check_ran(WatchedStep& step) {
  const auto part = step.twin.engine.target().parts().front();
  if (step.twin.recorder->has_copies(part)) return true;
  step.findings.add(Detector::ran, 0, "replay", "replay",
                    "no call of the step has read or written");
  return false;
}

void check_twin(WatchedStep& step) {
  const auto &plain = step.plain.engine, &twin = step.twin.engine;
  compare_results("step's", plain.out(), twin.out(), step);
  if (plain.drafter() == nullptr) return;
  compare_results("drafter's", plain.drafter_out(), twin.drafter_out(), step);
}

void check_path(WatchedStep& step) {
  const auto &plain = step.plain.engine, &eager = step.eager.engine;
  if (plain.target().mode() != step.mode) {
    step.findings.add(Detector::path, step.calls, "mode", "mode",
                      fmt::format("runs in mode {} instead of {}", name_of(plain.target().mode()),
                                  name_of(step.mode)));
  }
  check_runner(plain.target(), eager.target(), step);
  if (plain.drafter() != nullptr) check_runner(*plain.drafter(), *eager.drafter(), step);
}

// All sizes are captured before the first step, so a step never has to capture.
void check_cost(WatchedStep& step) {
  const device::decode::Counters counters = step.plain.engine.latest();
  if (counters.captures > 0) {
    step.findings.add(Detector::cost, step.calls, "capture", "capture",
                      fmt::format("{} graphs were captured again", counters.captures));
  } else if (counters.host_synchronizations > 0) {
    step.findings.add(
        Detector::cost, step.calls, "host", "host",
        fmt::format("the host waited for the device {} times", counters.host_synchronizations));
  }
}

void check_kept_plan(const std::optional<device::decode::StepPlan>& before, WatchedStep& step) {
  using device::decode::StepPlan;
  const auto& engine = step.plain.engine;
  const auto key_of = [&](const StepPlan& plan) {
    return device::decode::PlanKeyPolicy().key(keyed_step(engine.geometry(), plan));
  };
  const StepPlan* const last = step.plans.size() > 1 ? &step.plans[step.plans.size() - 2]
                               : before              ? &*before
                                                     : nullptr;
  if (engine.latest().plans_made == 0 || last == nullptr) return;
  if (key_of(*last) != key_of(step.plans.back())) return;
  step.findings.add(Detector::cost, step.calls, "get_decoding_sched_meta", "attention plan",
                    "the plan of the previous step is still valid, but was made again");
}

}  // namespace plumb::cases
