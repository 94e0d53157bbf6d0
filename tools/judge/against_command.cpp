// SPDX-License-Identifier: Apache-2.0
//
// plumb judge --against: compares two traces of an engine call by call and row by row.
#include "tools/judge/against_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "tools/judge/against_report.h"
#include "tools/judge/trace_files.h"
#include "tools/judge/trace_worker.h"
#include "tools/output.h"
#include "tools/selection.h"
#include "trace/against_messages.h"

namespace plumb::tools {

namespace {

constexpr std::size_t kCallsOfRowsRequest = 16;

trace::TraceOutline read_outline(const std::string& path, int jobs) {
  std::vector<trace::OutlineRequest> requests;
  for (std::string& file : files_of(path)) requests.push_back({std::move(file)});
  trace::TraceOutline outline;
  ask_trace_workers<trace::OutlineAnswer>(
      trace::kOutlineRole, jobs, requests,
      [](const trace::OutlineRequest& request) { return request.path + ": reading it"; },
      [&](std::size_t, trace::OutlineAnswer&& answer) {
        outline.push_back(std::move(answer.outline));
      });
  std::ranges::sort(outline, [](const trace::StepOutline& a, const trace::StepOutline& b) {
    return std::tie(a.step, a.rank, a.path) < std::tie(b.step, b.rank, b.path);
  });
  return outline;
}

std::vector<trace::RowDigests> ask_rows(const trace::TraceOutline& outline,
                                        const std::vector<trace::CallRef>& calls, int jobs) {
  std::vector<trace::RowsRequest> requests;
  for (const trace::CallRef& ref : calls) {
    const std::string& path = outline[ref.file].path;
    const bool fits = !requests.empty() && requests.back().path == path &&
                      requests.back().calls.size() < kCallsOfRowsRequest;
    if (!fits) requests.push_back({path, {}});
    requests.back().calls.push_back(ref.call);
  }
  std::vector<trace::RowDigests> rows;
  ask_trace_workers<trace::RowsAnswer>(
      trace::kRowsRole, jobs, requests,
      [](const trace::RowsRequest& request) {
        return fmt::format("{}: the rows of call {}", request.path, request.calls.front());
      },
      [&](std::size_t i, trace::RowsAnswer&& answer) {
        if (answer.rows.size() != requests[i].calls.size()) {
          throw trace::BadTrace(requests[i].path + ": its rows cannot be read");
        }
        for (trace::RowDigests& one : answer.rows) rows.push_back(std::move(one));
      });
  return rows;
}

// Compares all matched calls and rows that wrote different bits, in the order of A.
void compare_pairs(const trace::TraceOutline& a, const trace::TraceOutline& b,
                   const trace::Matching& matching, int jobs, AgainstReport& report) {
  std::vector<trace::PairRequest> requests;
  std::vector<const trace::MatchedCalls*> matches;
  for (const trace::MatchedCalls& one : matching.matched) {
    if (one.same) continue;
    matches.push_back(&one);
    requests.push_back(
        {a[one.a.file].path, b[one.b.file].path, one.a.call, one.b.call, one.differ});
  }
  ask_trace_workers<trace::PairAnswer>(
      trace::kPairRole, jobs, requests,
      [](const trace::PairRequest& request) {
        return fmt::format("{}: comparing call {}", request.path_a, request.a);
      },
      [&](std::size_t i, trace::PairAnswer&& answer) {
        const trace::MatchedCalls& one = *matches[i];
        report.add({.a = a[one.a.file].calls[one.a.call].place,
                    .b = b[one.b.file].calls[one.b.call].place,
                    .whole = one.whole,
                    .rows = one.differ,
                    .report = std::move(answer.report)});
      });
}

void check_against(const JudgeArguments& arguments) {
  if (!arguments.call.empty()) throw UsageError("--against compares all calls: leave out --call");
  if (arguments.follow) throw UsageError("--against compares whole traces: leave out --follow");
  if (arguments.rows) throw UsageError("--against compares all rows: leave out --rows");
  if (!arguments.repro.empty()) throw UsageError("--against has no --repro");
  if (!arguments.junit.empty())
    throw UsageError("--against writes --json alone: leave out --junit");
  if (!arguments.html.empty()) throw UsageError("--against writes --json alone: leave out --html");
  if (!arguments.json.empty()) check_writable(arguments.json);
}

}  // namespace

int against_command(const JudgeArguments& arguments, int jobs) {
  check_against(arguments);
  const process::Interrupts interrupts(process::Interrupts::Second::ends_at_once);
  const trace::TraceOutline a = read_outline(arguments.path, jobs);
  const trace::TraceOutline b = read_outline(arguments.against, jobs);
  const trace::Matching matching =
      match_calls(a, b, [&](const trace::TraceOutline& one, const auto& calls) {
        return ask_rows(one, calls, jobs);
      });
  AgainstReport report(a, b);
  report.count(matching);
  compare_pairs(a, b, matching, jobs, report);
  put(report.text(style_of(STDOUT_FILENO)));
  if (!arguments.json.empty()) {
    write_file(arguments.json, report.json(arguments.path, arguments.against));
  }
  if (report.exit_code() != 2) return report.exit_code();
  const std::string what = fmt::format("{} and {}", arguments.path, arguments.against);
  if (report.matched() == 0)
    throw std::runtime_error(what + ": no call or row of the two traces read the same bits");
  throw std::runtime_error(fmt::format("{}: {} calls wrote other bits and could not be judged",
                                       what, report.not_judged()));
}

std::optional<int> serve_against(const std::string& role) {
  if (role == trace::kOutlineRole) return trace::serve_outlines();
  if (role == trace::kRowsRole) return trace::serve_rows();
  if (role == trace::kPairRole) return trace::serve_pairs();
  return std::nullopt;
}

}  // namespace plumb::tools
