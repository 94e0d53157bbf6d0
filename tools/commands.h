// SPDX-License-Identifier: Apache-2.0
//
// Arguments and functions of the subcommands of plumb. The functions return an exit code
// (DESIGN.md, decision 3). tools/cli/ fills the arguments from a command line.
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
  std::optional<std::string> goldens;  // folder; "" for none; unset: plumb's own
  std::string seed_text = "0", json = "plumb.json", junit;
  std::string html;  // file for the HTML page; "": none
  std::string dump;  // folder for tensors of failed cases; "": none
  bool bisect = false, quiet = false;
  int least_coverage = 0;
  int most_failures = 0;     // the run ends after this many; 0: no limit
  bool last_failed = false;  // run only cases that failed in the report `json`
  bool resume = false;       // run only cases that the interrupted run of the report `json` lacks
  std::string shard;         // "2/4"; "": all, or as GoogleTest's variables say
  std::string devices;       // "all", or numbers with commas; "": the first
  std::vector<std::string> worker_devices;  // devices of `devices`; empty in a worker
  double timeout = 300;
  bool in_process = false, diagnose = true;
  std::optional<PluginInfo> plugin;  // what --plugin names; empty in a worker
};

struct MergeArguments {
  std::vector<std::string> reports;  // files
  std::string json = "plumb.json", junit;
  bool quiet = false;
};

struct ListArguments {
  Selection selection;
  bool ops = false, arguments = false, contracts = false, platforms = false, scenarios = false;
  bool faults = false, why = false;
};

struct BenchArguments {
  std::vector<std::string> only;
  std::vector<std::string> tiers, patterns;  // for the benchmark "tiers"
  std::string json;
  std::string platform;              // a real one: measures its kernels instead of plumb
  std::string torch_topk;            // file with times of torch.topk
  std::vector<std::string> plugins;  // two: base and change; one: change
};

struct AgreementArguments {
  Selection selection;
  std::vector<std::string> plugins;  // two: base and change; one: change; none: platforms
  std::string json;
};

struct JudgeArguments {
  std::string path;                   // of a trace, a rank's folder, or a single file
  std::string html;                   // file for the HTML page; "": none
  std::string call, json, junit;      // call: RANK/STEP/NUMBER; "": all
  std::vector<std::string> own_ops;   // Python files
  std::vector<std::string> profiles;  // files and folders, searched after plumb's own
  int jobs = 0;                       // 0: number of cores
  std::string extract, output;        // extract: RANK/STEP/NUMBER; output: file for it
  std::string repro;                  // Python file that shows the first wrong call; "": none
  std::optional<std::int64_t> rows;   // limit per call; 0: all; unset: as time allows
  // Judges while the engine records. Ends after this many seconds without a new file; 0: when the
  // recorder has finished.
  std::optional<double> follow;
  std::string against;  // trace to compare with; "": none
};

struct GoldenArguments {
  Selection selection;
  std::optional<std::string> goldens;  // folder; unset: plumb's own
  std::string reason;
  std::string commit;  // "": ask git
  bool dry_run = false, exact = false;
  bool sketches = false;      // regen: also if results are unchanged
  std::string first, second;  // operands of diff; `first`: file of approve and show
  std::string json, html;     // reports of diff and regen; json "-": standard output, without text
  std::string results;        // approve: digest of the reviewed results
};

struct InvarianceArguments {
  Selection selection;
  std::string sizes, json;
};

struct FaultsArguments {
  std::vector<std::string> platforms;  // empty: one per wave size
  std::vector<std::string> patterns;   // of names of faults; empty: all
  std::int64_t clean_steps = 0;        // number of random steps without a fault; 0: run faults
  std::string geometry = "small";      // or "production", for clean steps on a real device
  std::string shard;                   // "2/4": second of four equal shares of the faults; "": all
  std::string plugin;                  // its kernels serve the clean steps; "": plumb's own
  std::string seed_text = "0", json;
  int jobs = 0;
  bool quiet = false;
};

struct ReportArguments {
  std::vector<std::string> reports;  // files of plumb run, faults or judge; oldest first
  std::string output;                // file for the page
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
int golden_show_command(const GoldenArguments& arguments);
int faults_command(const FaultsArguments& arguments);
int report_command(const ReportArguments& arguments);

}  // namespace plumb::tools
