// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of plumb: what each is told, and what does it and returns an exit code
// (DESIGN.md, decision 3). tools/command_line.cpp reads them from the words of a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/plugin.h"
#include "tools/selection.h"

namespace plumb::tools {

struct RunArguments {
  Selection selection;
  std::uint64_t seed = 0;
  int jobs = 0;
  std::optional<std::string> goldens;  // folder; "" for none; unset: the repository's own
  std::string seed_text = "0", json = "plumb.json", junit;
  std::string html;  // page of the report; "": none
  std::string dump;  // folder for the tensors of failed cases; "": none
  bool bisect = false, quiet = false;
  int least_coverage = 0;
  int most_failures = 0;     // after which the run ends; 0: no limit
  bool last_failed = false;  // only what failed in the report that `json` names
  bool resume = false;       // only what the interrupted run of that report has not done
  std::string shard;         // "2/4"; "": all, or what GoogleTest's variables say
  std::string devices;       // "all", or their numbers with commas; "": the first
  std::vector<std::string> worker_devices;  // of `devices`; not known in a worker
  double timeout = 300;
  bool in_process = false, diagnose = true;
  std::optional<PluginInfo> plugin;  // what --plugin names; not known in a worker
};

struct MergeArguments {
  std::vector<std::string> reports;  // files
  std::string json = "plumb.json", junit;
  bool quiet = false;
};

struct ListArguments {
  Selection selection;
  bool ops = false, arguments = false, contracts = false, platforms = false, scenarios = false;
  bool why = false;
};

struct BenchArguments {
  std::vector<std::string> only;
  std::vector<std::string> tiers, patterns;  // of the benchmark "tiers"
  std::string json;
  std::string platform;              // a real one: its kernels instead of plumb itself
  std::string torch_topk;            // file
  std::vector<std::string> plugins;  // two: base and change; one: the change
};

struct AgreementArguments {
  Selection selection;
  std::vector<std::string> plugins;  // two: base and change; one: the change; none: platforms
  std::string json;
};

struct JudgeArguments {
  std::string path;                   // of a trace, of a rank's folder, or of one file
  std::string html;                   // page; "": none
  std::string call, json, junit;      // call: RANK/STEP/NUMBER; "": all
  std::vector<std::string> own_ops;   // files
  std::vector<std::string> profiles;  // files and folders, behind plumb's own
  int jobs = 0;                       // 0: cores
  std::string extract, output;        // extract: RANK/STEP/NUMBER; output: its file
  std::string repro;                  // file of Python that shows the first wrong call; "": none
  std::optional<std::int64_t> rows;   // of a call at most; 0: all; unset: as time allows
  // Judge while the engine records. The number: seconds without a new file after which it ends; 0:
  // it waits for the recorder.
  std::optional<double> follow;
  std::string against;  // another trace, to be compared with; "": none
};

struct GoldenArguments {
  Selection selection;
  std::optional<std::string> goldens;  // folder; unset: the repository's own
  std::string reason;
  std::string commit;  // "": git's
  bool dry_run = false, exact = false;
  std::string first, second;  // of diff; of approve the file
  std::string results;        // of approve: the digest of the results that were reviewed
};

struct InvarianceArguments {
  Selection selection;
  std::string sizes, json;
};

struct FaultsArguments {
  std::vector<std::string> platforms;  // empty: one of each kind of wave
  std::vector<std::string> patterns;   // of names of faults; empty: all
  std::int64_t clean_steps = 0;        // so many random steps, and no fault
  std::string geometry = "small";      // or "production", of clean steps on a real device
  std::string plugin;                  // whose kernels serve the clean steps; "": plumb's own
  std::string seed_text = "0", json;
  int jobs = 0;
  bool quiet = false;
};

struct ReportArguments {
  std::vector<std::string> reports;  // files that plumb run, faults or judge wrote; oldest first
  std::string output;                // the page
};

int run_command(RunArguments arguments);
int merge_command(const MergeArguments& arguments);
int list_command(const ListArguments& arguments);
int show_command(const Selection& selection);
int bench_command(const BenchArguments& arguments);
int agreement_command(const AgreementArguments& arguments);
int invariance_command(const InvarianceArguments& arguments);
int judge_command(const JudgeArguments& arguments);
int golden_regen_command(const GoldenArguments& arguments);
int golden_check_command(const GoldenArguments& arguments);
int golden_diff_command(const GoldenArguments& arguments);
int golden_approve_command(const GoldenArguments& arguments);
int faults_command(const FaultsArguments& arguments);
int report_command(const ReportArguments& arguments);

}  // namespace plumb::tools
