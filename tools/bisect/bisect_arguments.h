// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of plumb bisect: what each is told, and what does it. Exit codes: 0 what was
// looked for is found, 1 the question makes no sense as it was asked or has no answer, 2 bad usage
// or cannot run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bisect/search/journal.h"
#include "bisect/search/oracle.h"
#include "bisect/search/progress.h"
#include "bisect/search/sequence.h"
#include "tools/selection.h"

namespace plumb::tools {

struct BisectSearchArguments {
  bisect::Question run;
  double timeout = 300;
  std::int64_t repeat = 0;           // 0: as the rate of the failure wants it
  std::optional<std::string> state;  // unset: named after the question
  std::string json;
  bool quiet = false;
};

struct BisectCommitsArguments {
  BisectSearchArguments search;
  std::string good, bad, repository = ".", build, plumb, plugin;
};

struct BisectOpsArguments {
  BisectSearchArguments search;
  bool twice = false;
  std::int64_t times = 1;  // the same once more, so often
};

struct BisectEnvironmentsArguments {
  BisectSearchArguments search;
  std::string file;
  bool all = false;
};

struct BisectCaseArguments {
  BisectSearchArguments search;
  double seconds = 0;  // of the search; 0: no limit
  int jobs = 0;
};

int bisect_case_command(const BisectCaseArguments& arguments);
int bisect_commits_command(const BisectCommitsArguments& arguments);
int bisect_environments_command(const BisectEnvironmentsArguments& arguments);
int bisect_ops_command(const BisectOpsArguments& arguments);
int bisect_explain_command(const std::string& file);

// What the sub-commands share, in bisect_command.cpp.

// A plug-in's kernels are judged op by op.
CaseKinds kinds_of(const bisect::Question& run);

// Throws UsageError for what no run could mean. `here`: this plumb judges, so the case has to be in
// this build.
void check_search(const BisectSearchArguments& arguments, bool here);

// Opens the state file of a search and says how much of it is used again.
std::unique_ptr<bisect::Journal> open_journal(const BisectSearchArguments& arguments,
                                              const std::string& command,
                                              const nlohmann::json& question,
                                              bisect::Progress& progress);

// Runs a search that returns its report for machines, prints nothing else, and gives the exit code:
// writes --json, turns Undecided into a line and 1, and says of an interrupt how to go on.
int run_search(const BisectSearchArguments& arguments, const bisect::Journal& journal,
               const std::function<nlohmann::ordered_json()>& search);

// What is wrong in the first case that failed: its lines, where, what it looks like.
std::string failure_text(const bisect::Answer& answer);

// What every search of a sequence has found out, beside its candidates.
nlohmann::ordered_json common_json(const bisect::SequenceResult& result);

// For a shell: a program of the current folder is not looked for elsewhere.
std::string as_program(const std::string& path);

// For a shell: the command as it is, or in a shell of its own if it has operators.
std::string as_one_command(const std::string& command);

}  // namespace plumb::tools
