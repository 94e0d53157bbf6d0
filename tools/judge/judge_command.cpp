// SPDX-License-Identifier: Apache-2.0
//
// plumb judge: judges the calls of a trace in worker processes and reports them in the order in
// which they ran.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <thread>
#include <tuple>

#include "process/interrupts.h"
#include "process/worker.h"
#include "reference/bound.h"
#include "tools/commands.h"
#include "tools/html/report_page.h"
#include "tools/judge/against_command.h"
#include "tools/judge/extract_command.h"
#include "tools/judge/judge_report.h"
#include "tools/judge/trace_files.h"
#include "tools/judge/trace_worker.h"
#include "tools/output.h"
#include "tools/own_ops_file.h"
#include "tools/selection.h"
#include "trace/chain_messages.h"
#include "trace/export/extract.h"
#include "trace/export/repro.h"
#include "trace/profiles/profile.h"
#include "trace/ranks/rank_messages.h"
#include "trace/trace_messages.h"

namespace plumb::tools {

namespace {

using trace::CallReport;
using trace::CallsAnswer;
using trace::CallsRequest;

constexpr std::int64_t kCallsAtOnce = 16;
constexpr double kVerdictBudget = 0.25e9;  // ns of one thread per call

// The file of one step of one rank, and its number of calls.
struct TraceFile {
  std::string path;
  std::int64_t rank = 0, step = 0, calls = 0;
  std::map<std::string, std::string> provenance;
};

void ask_judges(const std::vector<CallsRequest>& requests, int jobs, const auto& take) {
  ask_trace_workers<CallsAnswer>(
      trace::kCallsRole, jobs, requests,
      [](const CallsRequest& request) {
        return request.begin == request.end
                   ? request.path + ": reading it"
                   : fmt::format("{}: judging call {}", request.path, request.begin);
      },
      take);
}

std::vector<TraceFile> read_files(const std::vector<std::string>& paths, int jobs) {
  std::vector<CallsRequest> requests;
  for (const std::string& path : paths) requests.push_back({.path = path});
  std::vector<TraceFile> files;
  ask_judges(requests, jobs, [&](std::size_t i, CallsAnswer&& answer) {
    files.push_back({paths[i], answer.rank, answer.step, answer.calls, answer.provenance});
  });
  std::ranges::sort(files, [](const TraceFile& a, const TraceFile& b) {
    return std::tie(a.step, a.rank, a.path) < std::tie(b.step, b.rank, b.path);
  });
  return files;
}

// Parsed from "rank/step/number", as "0/3/41".
struct CallId {
  std::int64_t rank = 0, step = 0, index = 0;
};
CallId parse_call_id(const std::string& text, const char* option) {
  CallId id;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* const number : {&id.rank, &id.step, &id.index}) {
    const auto [stop, trouble] = std::from_chars(at, end, *number);
    const bool last = number == &id.index;
    const bool good = trouble == std::errc() && *number >= 0 &&
                      (last ? stop == end : stop != end && *stop == '/');
    if (!good)
      throw UsageError(fmt::format("{} {}: a call is RANK/STEP/NUMBER, as 0/3/41", option, text));
    at = stop + 1;
  }
  return id;
}

std::vector<CallsRequest> requests_for(const std::vector<TraceFile>& files,
                                       const JudgeArguments& arguments) {
  std::vector<CallsRequest> requests;
  const auto request = [&](const TraceFile& file, std::int64_t begin, std::int64_t end) {
    requests.push_back({.path = file.path,
                        .begin = begin,
                        .end = end,
                        .most_rows = arguments.rows.value_or(0),
                        .budget = arguments.rows ? 0 : kVerdictBudget});
  };
  if (!arguments.call.empty()) {
    const CallId id = parse_call_id(arguments.call, "--call");
    for (const TraceFile& file : files) {
      if (file.rank != id.rank || file.step != id.step || id.index >= file.calls) continue;
      request(file, id.index, id.index + 1);
    }
    if (requests.empty()) throw UsageError("the trace has no call " + arguments.call);
    return requests;
  }
  for (const TraceFile& file : files) {
    for (std::int64_t begin = 0; begin < file.calls; begin += kCallsAtOnce) {
      request(file, begin, std::min(begin + kCallsAtOnce, file.calls));
    }
  }
  return requests;
}

// Chains are checked over all calls. A single chosen call has no others to compare with.
void check_chains_of(const std::vector<TraceFile>& files, int jobs, TraceSummary& summary) {
  std::vector<trace::ChainRequest> requests;
  for (const TraceFile& file : files) requests.push_back({file.path});
  ask_trace_workers<trace::ChainAnswer>(
      trace::kChainRole, jobs, requests,
      [](const trace::ChainRequest& request) { return request.path + ": comparing its calls"; },
      [&](std::size_t, trace::ChainAnswer&& answer) { summary.add(std::move(answer.report)); });
}

// Compares the ranks of each step that has several files.
void check_ranks_of(const std::map<std::int64_t, std::vector<std::string>>& steps, int jobs,
                    TraceSummary& summary) {
  std::vector<trace::RankRequest> requests;
  for (const auto& [step, paths] : steps) {
    if (paths.size() > 1) requests.push_back({paths});
  }
  ask_trace_workers<trace::RankAnswer>(
      trace::kRankRole, jobs, requests,
      [](const trace::RankRequest& request) {
        return request.paths.front() + ": comparing it with other ranks";
      },
      [&](std::size_t, trace::RankAnswer&& answer) { summary.add(std::move(answer.report)); });
}

int serve_as_worker() {
  const std::string role = process::worker_role();
  if (role == trace::kChainRole) return trace::serve_chains();
  if (role == trace::kRankRole) return trace::serve_ranks();
  if (role == trace::kReproRole) return trace::serve_repro();
  if (role == trace::kExtractRole) return trace::serve_extract();
  if (const auto code = serve_against(role)) return *code;
  return trace::serve_trace_calls();
}

void write_reports(const JudgeArguments& arguments, const TraceSummary& summary,
                   const std::optional<Interruption>& interruption) {
  if (!arguments.json.empty()) write_file(arguments.json, summary.json(interruption));
  if (!arguments.html.empty()) {
    write_file(arguments.html,
               report_page({parse_report(arguments.path, summary.json(interruption))}));
  }
  if (!arguments.junit.empty()) write_file(arguments.junit, summary.junit());
}

// Prints a wrong call as soon as it is known.
void tell(const CallReport& call) {
  if (!call.failed() && call.non_finite.empty()) return;
  put_at_once(fmt::format("WRONG  {}\n{}", place_of(call), call_text(call)));
}

// Judges the files of a trace: all at once, or new ones as they come.
class TraceJudgement {
 public:
  explicit TraceJudgement(const JudgeArguments& arguments, int jobs)
      : arguments_(arguments), jobs_(jobs), summary_(arguments.path) {}

  void judge(const std::vector<std::string>& paths) {
    const std::vector<TraceFile> files = read_files(paths, jobs_);
    const std::vector<CallsRequest> requests = requests_for(files, arguments_);
    summary_.describe(files.front().provenance);
    for (const TraceFile& file : files) paths_[{file.rank, file.step}] = file.path;
    files_ += files.size();
    requests_ += requests.size();
    ask_judges(requests, jobs_, [&](std::size_t, CallsAnswer&& answer) {
      for (CallReport& call : answer.reports) {
        if (arguments_.follow) tell(call);
        summary_.add(std::move(call));
      }
    });
    if (!arguments_.call.empty()) return;
    check_chains_of(files, jobs_, summary_);
    check_ranks_of(steps_of(files), jobs_, summary_);
  }

  // The files of all ranks so far, of the steps that these files have.
  std::map<std::int64_t, std::vector<std::string>> steps_of(
      const std::vector<TraceFile>& files) const {
    std::map<std::int64_t, std::vector<std::string>> steps;
    for (const TraceFile& file : files) steps[file.step];
    for (const auto& [place, path] : paths_) {
      const auto step = steps.find(place.second);
      if (step != steps.end()) step->second.push_back(path);
    }
    return steps;
  }

  // The file with the step of a call.
  const std::string& path_of(const CallReport& call) const {
    return paths_.at({call.rank, call.step});
  }
  const TraceSummary& summary() const { return summary_; }
  std::size_t files() const { return files_; }
  std::size_t requests() const { return requests_; }

 private:
  const JudgeArguments& arguments_;
  int jobs_;
  TraceSummary summary_;
  std::size_t files_ = 0, requests_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> paths_;  // by rank and step
};

// Prints the reason to stderr if there is nothing to write.
void write_repro(const std::string& path, const TraceJudgement& judgement) {
  const CallReport* const wrong = judgement.summary().first_wrong();
  std::string why = "no call is wrong";
  if (wrong != nullptr) {
    const trace::ReproRequest request{judgement.path_of(*wrong), wrong->index};
    const auto answer =
        TraceWorker(trace::kReproRole).ask<trace::ReproAnswer>(request, request.path);
    if (answer.why_not.empty()) return write_file(path, answer.text);
    why = fmt::format("call {}: {}", call_id(*wrong), answer.why_not);
  }
  print_error(fmt::format("--repro wrote nothing: {}", why));
}

void add_profiles_of(const std::vector<std::string>& paths) {
  try {
    for (const std::string& path : paths) trace::add_profiles(path);
  } catch (const trace::BadProfile& error) {
    throw UsageError(error.what());
  }
}

int extract(const JudgeArguments& arguments, int jobs) {
  const bool judges = arguments.follow || arguments.rows || !arguments.call.empty() ||
                      !arguments.json.empty() || !arguments.junit.empty() ||
                      !arguments.html.empty() || !arguments.repro.empty() ||
                      !arguments.against.empty();
  if (judges)
    throw UsageError("--extract judges nothing: leave out all but --output, --ops and --profile");
  const CallId id = parse_call_id(arguments.extract, "--extract");
  for (const TraceFile& file : read_files(files_of(arguments.path), jobs)) {
    if (file.rank != id.rank || file.step != id.step || id.index >= file.calls) continue;
    return extract_command(arguments, file.path, id.index);
  }
  throw UsageError("the trace has no call " + arguments.extract);
}

// Judges files as they come. Ctrl-C is the normal way to end this, so it is not reported as an
// interruption. Throws UsageError if no file came.
void follow(const JudgeArguments& arguments, TraceJudgement& judgement) {
  try {
    follow_files(arguments.path, *arguments.follow,
                 [&](const std::vector<std::string>& files) { judgement.judge(files); });
  } catch (const process::Interrupted& error) {
    if (error.signal() == 0) throw;
  }
  if (judgement.files() == 0) throw UsageError(arguments.path + ": no step-*.h5 has come");
}

void check_words(const JudgeArguments& arguments) {
  if (arguments.follow && !arguments.call.empty()) {
    throw UsageError("--follow judges all calls: leave out --call");
  }
  for (const std::string& path :
       {arguments.json, arguments.junit, arguments.html, arguments.repro}) {
    if (!path.empty()) check_writable(path);
  }
}

}  // namespace

int judge_command(const JudgeArguments& arguments) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = arguments.jobs > 0 ? arguments.jobs : cores;
  reference::set_thread_count(std::max(1, cores / jobs));
  add_ops_of(arguments.own_ops);
  add_profiles_of(arguments.profiles);
  if (process::is_worker()) return serve_as_worker();
  if (!arguments.extract.empty()) return extract(arguments, jobs);
  if (!arguments.against.empty()) return against_command(arguments, jobs);
  check_words(arguments);
  const process::Interrupts interrupts(process::Interrupts::Second::ends_at_once);
  TraceJudgement judgement(arguments, jobs);
  std::optional<Interruption> interruption;
  try {
    arguments.follow ? follow(arguments, judgement) : judgement.judge(files_of(arguments.path));
  } catch (const process::Interrupted& error) {
    interruption = {error.what(), 128 + error.signal(), judgement.requests()};
  }
  const TraceSummary& summary = judgement.summary();
  put(summary.text(style_of(STDOUT_FILENO)));
  if (interruption) put(fmt::format("interrupted: the counts are of the calls until then\n"));
  write_reports(arguments, summary, interruption);
  if (!interruption && !arguments.repro.empty()) write_repro(arguments.repro, judgement);
  if (!interruption && summary.exit_code() == 2) {
    throw std::runtime_error(arguments.path + ": no call was judged");
  }
  return interruption ? interruption->exit_code : summary.exit_code();
}

}  // namespace plumb::tools
