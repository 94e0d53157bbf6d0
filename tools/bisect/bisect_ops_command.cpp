// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect ops: searches the op, or the part of the host, that makes a decode step fail.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "bisect/ops/step_ops.h"
#include "bisect/search/search.h"
#include "faults/decode/planted_case.h"
#include "process/own_program.h"
#include "reference/bound.h"
#include "tools/bisect/bisect_arguments.h"
#include "tools/bisect/bisect_ops_codec.h"
#include "tools/bisect/bisect_ops_report.h"
#include "tools/output.h"
#include "tools/plugin.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using bisect::joined;
using bisect::Ops;
using bisect::OpsAnswer;
using bisect::Undecided;
using nlohmann::json;
using nlohmann::ordered_json;

// The case, with its setup on each platform of the question.
struct Served {
  cases::StepCase source;
  std::string which;
  std::vector<std::string> platforms;
  std::vector<cases::ServedCase> on;  // one per platform
  std::optional<PluginInfo> plugin;
};

struct SelectedSteps {
  cases::StepCase which;
  std::vector<std::string> platforms;
};

SelectedSteps select_one(const BisectOpsArguments& arguments) {
  Selection selection;
  selection.patterns = {arguments.search.run.which};
  selection.settings = arguments.search.run.settings;
  selection.case_files = arguments.search.run.case_files;
  if (!arguments.search.run.platform.empty()) selection.platforms = {arguments.search.run.platform};
  const SelectedAny selected = select_any(selection, CaseKinds::ops_and_decode_steps);
  const cases::AnyCase& first = selected.cases.front();
  if (first.of_steps() == nullptr) {
    throw UsageError(
        fmt::format("{}: bisect ops needs a decode step (decode_step/row/mode); for a case "
                    "of one op, plumb run says what is wrong",
                    first.id()));
  }
  if (selected.cases.size() > 1) {
    throw UsageError(fmt::format("\"{}\" names {} cases, from {} to {}: bisect ops takes one",
                                 arguments.search.run.which, selected.cases.size(), first.id(),
                                 selected.cases.back().id()));
  }
  return {*first.of_steps(), selected.platforms};
}

// On a real device ops in graphs cannot be replaced, because a host function cannot read device
// memory.
void check_exchange(const cases::DecodeSetup& setup, const std::string& which) {
  if (setup.sample > 0) {
    throw UsageError(which + ": too large for the reference to replace ops; use --twice");
  }
  if (!is_real(setup.platform) || setup.mode == device::decode::GraphMode::none) return;
  throw UsageError(
      fmt::format("{}: ops cannot be replaced in graphs of {}, because a host function "
                  "cannot read device memory; use mode eager or --twice",
                  which, setup.platform));
}

Served serve_case(const BisectOpsArguments& arguments) {
  const SelectedSteps selected = select_one(arguments);
  Served served{selected.which, selected.which.id(), {}, {}, {}};
  std::string why;
  for (const std::string& platform : selected.platforms) {
    const std::string absent = device::why_unavailable(platform);
    if (!absent.empty()) throw NotInThisBuild(fmt::format("{}: {}", platform, absent));
    try {
      served.on.push_back(
          planted_case(selected.which, platform, parse_seed(arguments.search.run.seed)));
      served.platforms.push_back(platform);
    } catch (const cases::NotOnThisPlatform& error) {
      why = error.what();
    } catch (const cases::BadRow&) {
      throw;
    } catch (const std::invalid_argument& error) {  // a mode that the model does not support
      why = error.what();
    }
  }
  if (served.on.empty()) throw UsageError(served.which + ": " + why);
  if (arguments.twice || !arguments.search.run.plugin.empty()) return served;
  for (const cases::ServedCase& one : served.on) check_exchange(one.setup, served.which);
  return served;
}

json question_of(const BisectOpsArguments& arguments, const Served& served) {
  json question = bisect::to_json(arguments.search.run);
  question["case"] = served.which;
  question["twice"] = arguments.twice;
  question["files"] = digests_of(arguments.search.run);
  return question;
}

// Asks questions about one case. Answers in the state file are used again.
class Questions {
 public:
  Questions(const BisectOpsArguments& arguments, const Served& served, bisect::Journal& journal,
            bisect::Progress& progress)
      : served_(served),
        journal_(journal),
        progress_(progress),
        worker_(process::own_command_line(), arguments.search.timeout) {}

  // Number of the first platform on which the case fails.
  std::size_t failing_platform() {
    std::string skipped;
    for (std::size_t i = 0; i < served_.platforms.size(); ++i) {
      const OpsAnswer answer = watch(i, {}, "is there a finding");
      if (!answer.clean()) return i;
      if (!answer.skipped.empty()) skipped = answer.skipped;
    }
    if (!skipped.empty()) throw Undecided(fmt::format("{}: {}", served_.which, skipped));
    throw Undecided(fmt::format("{} passes on {}: there is nothing to bisect", served_.which,
                                fmt::join(served_.platforms, ", ")));
  }

  OpsAnswer watch(std::size_t platform, const Ops& exchanged, const std::string& why) {
    const std::string key = key_of("watch", platform, exchanged);
    if (const auto known = journal_.find(key, from_journal<OpsAnswer>)) return *known;
    const ProgressStep step(*this, why.empty() ? "replaced: " + joined(exchanged) : why);
    ++asked_;
    const OpsAnswer answer = worker_.watch(served_.platforms[platform], exchanged);
    journal_.record(key, journal_entry(answer), why);
    return answer;
  }

  std::vector<float> results(std::size_t platform, const Ops& exchanged) {
    const std::string key = key_of("results", platform, exchanged);
    if (const auto known = journal_.find(key, from_journal<std::vector<float>>)) return *known;
    const ProgressStep step(*this, "results, replaced: " + joined(exchanged));
    const std::vector<float> results = worker_.results(served_.platforms[platform], exchanged);
    journal_.record(key, journal_entry(results), "do culprits cancel");
    return results;
  }

  // Repetition `time` of a second run.
  TwiceAnswer twice(std::size_t second, const std::string& name, std::int64_t time) {
    const std::string key = fmt::format("twice, {}, {}, {}", served_.platforms.front(), name, time);
    if (const auto known = journal_.find(key, from_journal<TwiceAnswer>)) return *known;
    const ProgressStep step(*this, name);
    ++asked_;
    TwiceAnswer answer = worker_.twice(served_.platforms.front(), second);
    journal_.record(key, journal_entry(answer), "");
    return answer;
  }

  void note(const std::string& text) {
    journal_.note(text);
    progress_.line(text);
  }
  void expect(int left) { left_ = left; }
  int asked() const { return asked_; }

 private:
  struct ProgressStep {
    ProgressStep(Questions& all, const std::string& what) : questions(all) {
      questions.progress_.begin(what, std::max(questions.left_--, 1));
    }
    ~ProgressStep() { questions.progress_.end(); }
    Questions& questions;
  };

  std::string key_of(const char* what, std::size_t platform, const Ops& exchanged) const {
    return fmt::format("{}, {}, replaced: {}", what, served_.platforms[platform],
                       joined(exchanged));
  }

  const Served& served_;
  bisect::Journal& journal_;
  bisect::Progress& progress_;
  OpsWorker worker_;
  int asked_ = 0, left_ = 2;  // one op to blame: a watch with it and one without
};

std::string reproduce_line(const BisectOpsArguments& arguments, const Served& served,
                           const std::string& platform) {
  bisect::Question run = arguments.search.run;
  run.which = served.which;
  run.platform = platform;
  if (!arguments.twice) return "plumb run" + options_text(run);
  // plumb bisect ops takes the case as an argument, without --case.
  const std::string options = options_text(run), name = " --case " + served.which;
  return "plumb bisect ops " + served.which + " --twice" + options.substr(name.size());
}

Ops replaceable_ops(const Served& served) {
  if (!served.plugin) return bisect::exchangeable_ops();
  return {served.plugin->ops.begin(), served.plugin->ops.end()};
}

ordered_json exchange_ops(const BisectOpsArguments& arguments, const Served& served,
                          Questions& questions) {
  const std::size_t platform = questions.failing_platform();
  bisect::OpsQuestions ask;
  ask.watch = [&](const Ops& exchanged, const std::string& why) {
    return questions.watch(platform, exchanged, why);
  };
  ask.results = [&](const Ops& exchanged) { return questions.results(platform, exchanged); };
  ask.note = [&](const std::string& text) { questions.note(text); };
  const bisect::OpsReport report = search_ops(replaceable_ops(served), ask);
  if (report.kind == bisect::OpsReport::Conclusion::undecided) throw Undecided(report.why);
  const std::string reproduce = reproduce_line(arguments, served, served.platforms[platform]);
  const SearchedSteps steps{served.which, served.platforms[platform],
                            served.plugin ? served.plugin->name : ""};
  put(tools::report_text(report, steps, questions.asked()));
  put("    reproduce: " + reproduce + "\n");
  ordered_json told = tools::to_json(report, steps, questions.asked());
  told["platform"] = served.platforms[platform];
  told["reproduce"] = reproduce;
  return told;
}

// Compares each kind of second run with the first. On a real device the second run is a repetition.
ordered_json run_twice(const BisectOpsArguments& arguments, const Served& served,
                       Questions& questions) {
  TwiceReport report{served.which, served.platforms.front(), {}, ""};
  const auto runs = cases::second_runs(served.on.front().setup);
  questions.expect(static_cast<int>(std::ssize(runs) + arguments.times - 1));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::int64_t times = i == 0 ? arguments.times : 1;
    for (std::int64_t time = 0; time < times; ++time) {
      const TwiceAnswer answer = questions.twice(i, runs[i].name, time);
      if (!answer.failed.empty()) {
        throw Undecided(fmt::format("{}: {}: {}", served.which, runs[i].name, answer.failed));
      }
      if (answer.difference) report.found.push_back({runs[i].name, *answer.difference});
      if (answer.difference) break;
    }
  }
  if (report.found.empty()) {
    throw Undecided(fmt::format("{} on {}: in {} second runs every call gave the same bits",
                                served.which, report.platform,
                                std::ssize(runs) + arguments.times - 1));
  }
  report.reproduce = reproduce_line(arguments, served, report.platform);
  put(report_text(report));
  return to_json(report, questions.asked());
}

}  // namespace

int bisect_ops_command(const BisectOpsArguments& arguments) {
  Served served = serve_case(arguments);
  const std::string& plugin = arguments.search.run.plugin;
  if (process::is_worker()) {
    const std::uint64_t seed = parse_seed(arguments.search.run.seed);
    return serve_ops(
        [&](const std::string& platform) { return planted_case(served.source, platform, seed); },
        plugin);
  }
  if (!plugin.empty()) served.plugin = probe_plugin(plugin, arguments.search.timeout);
  if (!arguments.search.json.empty()) check_writable(arguments.search.json);
  bisect::Progress progress(arguments.search.quiet);
  const json question = question_of(arguments, served);
  const auto journal = open_journal(arguments.search, "bisect ops", question, progress);
  Questions questions(arguments, served, *journal, progress);
  return run_search(arguments.search, *journal, [&] {
    ordered_json report{{"schema", 1}, {"command", "bisect ops"}, {"question", question}};
    report.update(arguments.twice ? run_twice(arguments, served, questions)
                                  : exchange_ops(arguments, served, questions));
    return report;
  });
}

}  // namespace plumb::tools
