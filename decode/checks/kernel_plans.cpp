// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/kernel_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cases/drivers/op_chain.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

namespace {

using device::decode::Attention;
using device::decode::Geometry;
using device::decode::StepPlan;
using RowLengths = std::vector<std::int32_t>;
using RowNumbers = std::map<std::string, std::int64_t>;

// The call of the planner that belongs to a plan: its row, its input lengths, and for each result
// the tensor in which the reader of the plan holds it.
struct PlannerCall {
  std::string op;
  RowNumbers row;
  std::map<std::string, RowLengths> inputs;
  std::map<std::string, std::string> results;
};

std::size_t nth(std::int64_t i) { return static_cast<std::size_t>(i); }

// Candidates of each row of an attention: in the main cache, and in the extra one.
struct CandidateCounts {
  RowLengths main, extra;
};
CandidateCounts counts_of(Attention kind, std::int64_t rows, const StepPlan& plan,
                          const Geometry& geometry) {
  CandidateCounts counts;
  const auto least = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int32_t>(std::min(a, b));
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t end = row < plan.live_tokens ? plan.positions[nth(row)] + 1 : 0;
    counts.main.push_back(least(end, kind == Attention::tokens ? geometry.top_k : geometry.window));
    if (kind == Attention::c4a)
      counts.extra.push_back(least(end / device::decode::kC4a, geometry.top_k));
    if (kind == Attention::c128a) {
      counts.extra.push_back(least(end / device::decode::kC128a, geometry.c128a_width()));
    }
  }
  return counts;
}

PlannerCall planner_of_attention(const CallRecorder::CallRecording& reader, const StepPlan& plan,
                                 const Geometry& geometry) {
  const Attention kind =
      reader.place.draft ? Attention::window : geometry.layers.at(nth(reader.place.layer));
  const std::int64_t requests = reader.row.integer("requests");
  CandidateCounts counts = counts_of(kind, requests, plan, geometry);
  PlannerCall call{.op = "get_decoding_sched_meta",
                   .row = {{"requests", requests},
                           {"topk", reader.row.integer("width")},
                           {"extra_topk", reader.row.integer("extra_width")},
                           {"num_sm_parts", reader.tensors.at("tiles").rows()},
                           {"block_n", reader.row.integer("block_n")},
                           {"fixed_overhead", reader.row.integer("fixed_overhead")}},
                   .results = {{"tile_scheduler_metadata", "tiles"}, {"num_splits", "num_splits"}}};
  call.inputs["topk_length"] = std::move(counts.main);
  if (!counts.extra.empty()) call.inputs["extra_topk_length"] = std::move(counts.extra);
  return call;
}

PlannerCall planner_of_logits(const CallRecorder::CallRecording& reader, const StepPlan& plan) {
  PlannerCall call{.op = "paged_mqa_logits_metadata", .results = {{"schedule", "schedule"}}};
  for (const char* name : {"requests", "next_n", "slots", "split_kv", "atoms"}) {
    call.row[name] = reader.row.integer(name);
  }
  const RowLengths& all = plan.packed ? plan.packed_state_lens : plan.state_lens;
  const std::int64_t rows = call.row["requests"] * call.row["next_n"];
  RowLengths& lengths = call.inputs["context_lens"];
  for (std::int64_t row = 0; row < std::min(rows, std::ssize(all)); ++row) {
    lengths.push_back(std::max(all[nth(row)], std::int32_t{0}));
  }
  lengths.resize(nth(rows), 0);
  return call;
}

// The first defect of the plan that `reader` got, judged as the output of the planner's call.
std::optional<std::string> judge(const PlannerCall& call, const CallRecorder::CallRecording& reader,
                                 const device::Properties& properties) {
  const auto problem =
      find_op(call.op).make_problem(ad_hoc_row(find_op(call.op), call.row), properties);
  TensorSet tensors = problem->make_tensors();
  for (const auto& [name, lengths] : call.inputs) {
    std::copy(lengths.begin(), lengths.end(), tensors.at(name).data<std::int32_t>());
  }
  for (const auto& [result, given] : call.results) {
    const Bytes& bytes = reader.tensors.at(given).bytes();
    auto& copy = tensors.at(result).bytes();
    if (bytes.size() != copy.size()) {
      return fmt::format("{} has {} bytes, the planner writes {}", given, bytes.size(),
                         copy.size());
    }
    std::copy(bytes.begin(), bytes.end(), copy.begin());
  }
  const Step step{0, problem->capacity(), Fill::real, DeadRows::foreign};
  for (const TensorReport& report : compare(problem->expect(step, tensors, {}, {}))) {
    if (!report.passed()) return report.failures.front();
  }
  return std::nullopt;
}

}  // namespace

std::optional<WrongKernelPlan> wrong_kernel_plan(const CallRecorder::CallRecording& reader,
                                                 const StepPlan& plan, const Geometry& geometry,
                                                 const device::Properties& properties) {
  PlannerCall call;
  if (reader.op == "sparse_mla_decode" && reader.tensors.contains("tiles")) {
    call = planner_of_attention(reader, plan, geometry);
  } else if (reader.op == "fp8_paged_mqa_logits" && reader.tensors.contains("schedule")) {
    call = planner_of_logits(reader, plan);
  } else {
    return std::nullopt;
  }
  const auto wrong = judge(call, reader, properties);
  if (!wrong) return std::nullopt;
  return WrongKernelPlan{call.op, fmt::format("{} reads a plan that is wrong for the lengths of "
                                              "its requests: {}",
                                              reader.place.name, *wrong)};
}

}  // namespace plumb::cases
