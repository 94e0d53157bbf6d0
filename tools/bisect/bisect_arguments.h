// SPDX-License-Identifier: Apache-2.0
//
// Arguments and functions of the subcommands of plumb bisect. Exit codes: 0 found, 1 the question
// makes no sense or has no answer, 2 bad usage or cannot run.
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
  std::int64_t repeat = 0;           // 0: chosen from the measured failure rate
  std::optional<std::string> state;  // unset: name derived from the question
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
  std::int64_t times = 1;  // repetitions of the identical second run
};

struct BisectEnvironmentsArguments {
  BisectSearchArguments search;
  std::string file;
  bool all = false;
};

struct BisectCaseArguments {
  BisectSearchArguments search;
  double seconds = 0;  // time limit of the search; 0: none
  int jobs = 0;
};

int bisect_case_command(const BisectCaseArguments& arguments);
int bisect_commits_command(const BisectCommitsArguments& arguments);
int bisect_environments_command(const BisectEnvironmentsArguments& arguments);
int bisect_ops_command(const BisectOpsArguments& arguments);
int bisect_explain_command(const std::string& file);

// Functions that the subcommands share, in bisect_command.cpp.

// Kinds of cases that a search may take: with a plug-in, only cases of single ops.
CaseKinds kinds_of(const bisect::Question& run);

// Throws UsageError for a question that no run could answer. `here`: this program judges, so it
// must have the case.
void check_search(const BisectSearchArguments& arguments, bool here);

// Digests of plumb and of the files that it runs, by path. They are part of the question of a
// search that builds nothing: after a change of a file, answers in the state file are no longer
// right.
nlohmann::json digests_of(const bisect::Question& run);

// Opens the state file of a search and prints how many of its answers are used again.
std::unique_ptr<bisect::Journal> open_journal(const BisectSearchArguments& arguments,
                                              const std::string& command,
                                              const nlohmann::json& question,
                                              bisect::Progress& progress);

// Runs a search, which returns its JSON report, and returns the exit code. Writes --json. Undecided
// becomes one line and exit code 1. After an interrupt a line says how to continue.
int run_search(const BisectSearchArguments& arguments, const bisect::Journal& journal,
               const std::function<nlohmann::ordered_json()>& search);

// Text about the first failed case: its lines, its place, and its diagnosis.
std::string failure_text(const bisect::Answer& answer);

// JSON members common to all searches of a sequence, except the candidates.
nlohmann::ordered_json common_json(const bisect::SequenceResult& result);

// Quotes a program for a shell. A program of the current folder gets "./", so that PATH is not
// searched.
std::string as_program(const std::string& path);

// Quotes a command for a shell. A command with operators gets a shell of its own.
std::string as_one_command(const std::string& command);

}  // namespace plumb::tools
