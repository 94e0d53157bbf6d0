// SPDX-License-Identifier: Apache-2.0
//
// plumb show CASE: prints parameters, shapes, digest of the inputs, declared numerics, points (the
// conditions under which the case runs) and bounds.
#include <fmt/format.h>
#include <xxhash.h>

#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tables/op_table.h"
#include "cases/tensors/fill.h"
#include "diagnosis/decode_step_run.h"
#include "faults/decode/planted_case.h"
#include "process/own_program.h"
#include "process/worker.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/plugin.h"

namespace plumb::tools {

namespace {

std::string digest_of(const cases::HostTensor& tensor) {
  const XXH128_hash_t hash = XXH3_128bits(tensor.bytes().data(), tensor.bytes().size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string_view role_name(cases::Role role) {
  switch (role) {
    case cases::Role::input: return "input";
    case cases::Role::output: return "output";
    case cases::Role::scratch: return "scratch";
    case cases::Role::state: return "state";
  }
  return "?";
}

// `table`: nullptr for an op without one.
void show_tensors(const cases::TensorSet& tensors, const cases::OpTable* table,
                  std::string_view fill) {
  put_format("tensors (inputs of the first step, {} fill)\n", fill);
  for (const cases::HostTensor& tensor : tensors.all()) {
    const cases::TensorSpec& spec = tensor.spec();
    put_format("  {:<22}{:<8}{:<6}[{}]", spec.name, role_name(spec.role), name_of(spec.dtype),
               fmt::join(spec.shape, ", "));
    if (!spec.strides.empty()) put_format(" strides [{}]", fmt::join(spec.strides, ", "));
    if (spec.role == cases::Role::input) put_format("  {}", digest_of(tensor));
    const std::string meaning = table == nullptr ? "" : table->describe(spec);
    put_format("{}{}\n", meaning.empty() ? "" : "  ", meaning);
  }
}

const char* format_name(plumb_format format) {
  constexpr const char* kNames[] = {"f64",  "f32",    "tf32",    "tf32 (truncated)",
                                    "bf16", "e4m3fn", "e4m3fnuz"};
  return kNames[format];
}

std::string sum_name(const plumb_numerics& n) {
  constexpr const char* kUnits[] = {"", "the bf16 unit of sm90", "the fp8 unit of sm90",
                                    "a unit of 24 bits"};
  if (n.sum_unit == PLUMB_UNIT_FP32) return format_name(n.accumulator);
  if (n.sum_step == 0) return kUnits[n.sum_unit];
  return fmt::format("{}, {} products at a time", kUnits[n.sum_unit], n.sum_step);
}

// Numerics of plumb's own kernels.
void show_numerics(const device::Implementation& implementation, std::string_view op) {
  for (const device::OpEntry& entry : implementation.entries) {
    if (op != entry.op) continue;
    const plumb_numerics& n = entry.numerics;
    put_format(
        "numerics of {}: products of {}, sums in {}, {} chains, p in {}, functions within {} ulp, "
        "{}\n",
        implementation.name, format_name(n.product), sum_name(n), n.chains,
        format_name(n.probability), n.function_ulp,
        n.deterministic ? "deterministic" : "not deterministic");
    if (n.score > PLUMB_F32) put_format("steps store scores in {}\n", format_name(n.score));
    if (!entry.contract.empty()) put_format("contract: {}\n", entry.contract);
    if (!op.starts_with("top_k")) continue;
    constexpr const char* kOrders[] = {"any order", "an order of its own", "ascending", "by key"};
    constexpr const char* kEqual[] = {"any", "the same each time", "the lowest indices"};
    put_format("indices: {}; of equal keys: {}\n", kOrders[n.index_order], kEqual[n.equal_keys]);
  }
}

void show_bounds(const cases::Case& which, const cases::RunOptions& options) {
  const cases::CaseResult result = cases::run_case(which, options);
  put_format("run: {}, {} points, {} launches\n", name_of(result.outcome), result.points,
             result.launches);
  for (const cases::TensorSummary& tensor : result.tensors) {
    put_format("  {:<22}{} elements compared, largest error / bound {:.3g}, observability {:.3g}\n",
               tensor.tensor, tensor.elements_compared, tensor.margin, tensor.observability);
    if (tensor.sample.rows > 0) put_format("    {}\n", cases::text_of(tensor.sample));
    if (tensor.flips == 0) continue;
    put_format("    {} other than the exact ones, within the errors{}\n", tensor.flips,
               tensor.flip.empty() ? "" : "; " + tensor.flip);
  }
}

// Prints the schedule step by step: requests and tokens.
void show_schedule(const cases::ServedCase& served) {
  put_format("schedule: {}\n", text_of(served.shape));
  int n = 0;
  for (const cases::ScheduledStep& step : make_schedule(served.shape, served.setup.geometry)) {
    put_format("  step {}:", n++);
    for (const std::uint64_t id : step.finished) put_format(" {} ends,", id);
    for (const auto& [id, tokens] : step.admitted) put_format(" {} comes with {},", id, tokens);
    for (const cases::SharedPrefix& one : step.shared) {
      put_format(" {} comes with {} of {},", one.request, one.tokens, one.other);
    }
    if (step.dummy_tokens > 0) put_format(" {} tokens of padding run,", step.dummy_tokens);
    if (step.recapture > 0) put_format(" capture {} is done again,", step.recapture);
    std::vector<std::string> batch;
    for (const device::decode::Scheduled& one : step.batch) {
      batch.push_back(fmt::format("{}: {}", one.request, one.tokens));
    }
    put_format(" batch {{{}}}\n", fmt::join(batch, ", "));
  }
}

void show_what_is_asked(const cases::AnyCase& which, const std::string& platform) {
  put_format("{}   {}\n{}\n{}: {}\n", which.id(), platform, which.row().why, which.scenario(),
             which.scenario_why());
  for (const auto& [name, value] : which.row().integers) put_format("  {} = {}\n", name, value);
  for (const auto& [name, value] : which.row().words) put_format("  {} = {}\n", name, value);
}

// Prints the floats of the C struct with the row's values.
void show_reals(const cases::Case& which) {
  for (const cases::OpTable::Field& field : which.op->table->fields()) {
    const auto* scalar = std::get_if<cases::TableScalar>(&field);
    if (scalar == nullptr || scalar->member.type != cases::MemberType::f32) continue;
    const std::string& name = scalar->member.name;
    put_format("  {} = {:g}\n", name, which.row.real(name, scalar->real_of(which.row)));
  }
}

void show_decode_step(const cases::StepCase& which, const std::string& platform) {
  show_what_is_asked(which, platform);
  const cases::ServedCase served = cases::planted_case(which, platform, 0);
  const auto& geometry = served.setup.geometry;
  put_format("layers {}, captured sizes {}, contexts up to {}\n", geometry.layers.size(),
             fmt::join(geometry.capture_sizes, " "), geometry.max_context);
  show_schedule(served);
  cases::RunOptions options;
  options.platform = platform;
  const cases::CaseResult result = cases::run_decode_step(which, options, false).result;
  put_format("run: {}{}, {} steps, {} calls judged\n", name_of(result.outcome),
             result.reason.empty() ? "" : " (" + result.reason + ")", result.launches,
             result.comparisons);
}

void show_case(const SelectedAny& selected, const std::string& plugin) {
  const cases::Case& which = *selected.cases.front().of_op();
  cases::RunOptions options;
  options.platform = selected.platforms.front();
  options.tier = selected.tier;
  if (!plugin.empty()) options = with_plugin_process(std::move(options), plugin);
  show_what_is_asked(which, options.platform);
  show_reals(which);
  const auto problem = cases::make_problem(which, options, false);
  cases::TensorSet tensors = problem->make_tensors();
  cases::Step step;
  step.seed = cases::mix(cases::seed_of(which.id()), 100);
  step.live = problem->capacity();
  problem->fill(step, tensors);
  show_tensors(tensors, which.op->table, cases::is_recorded(which.row) ? "recorded" : "real");
  show_numerics(options.implementation(options.platform, false), which.op->name);
  put_format("points\n");
  for (const cases::Point& point : cases::choose_points(which, *problem, options)) {
    put_format("  {}\n", point.text());
  }
  show_bounds(which, options);
}

// Exceptions pass to the parent process, which prints them.
process::Bytes show_in_worker(const SelectedAny& selected, const std::string& plugin) {
  show_case(selected, plugin);
  finish_output();
  return {};
}

}  // namespace

int show_command(const Selection& selection) {
  const bool own = selection.plugin.empty();
  const SelectedAny selected =
      select_any(selection, own ? CaseKinds::ops_and_decode_steps : CaseKinds::ops);
  if (selected.cases.size() != 1) {
    throw UsageError(fmt::format("show wants one case; this names {}, the first is {}",
                                 selected.cases.size(), selected.cases.front().id()));
  }
  if (const cases::StepCase* which = selected.cases.front().of_steps()) {
    show_decode_step(*which, selected.platforms.front());
    return 0;
  }
  if (own) {
    show_case(selected, "");
    return 0;
  }
  if (process::is_worker()) {
    return process::serve(
        [&](const process::WorkerRequest&) { return show_in_worker(selected, selection.plugin); });
  }
  const double timeout = RunArguments{}.timeout;
  probe_plugin(selection.plugin, timeout);
  process::Worker worker({.words = process::own_command_line(), .timeout = timeout});
  const auto answer = worker.run({0, selected.cases.front().id(), {}});
  if (const auto* death = std::get_if<process::Death>(&answer)) {
    throw std::runtime_error(death->why);
  }
  return 0;
}

}  // namespace plumb::tools
