// SPDX-License-Identifier: Apache-2.0
//
// Reports of a run: failures, summary, coverage table, JSON, JUnit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/checks/findings.h"
#include "golden/compare.h"
#include "tools/plugin.h"
#include "tools/run/failure_picture.h"

namespace plumb::tools {

// A finished case, and the command line that repeats it.
struct Finished {
  cases::CaseResult result;
  std::vector<cases::Finding> findings = {};  // of a decode step, machine-readable
  golden::GoldenComparison golden;
  std::string op, row, scenario;
  std::string reproduce;
  std::vector<std::string> contrast = {};    // statements about what fails and what passes
  std::vector<std::string> notes = {};       // remarks about the plug-in that do not fail the case
  std::vector<TensorPicture> pictures = {};  // of wrong tensors, for cases of ops
  std::string dump = {};          // folder of the failed launch's tensors (--dump); "": none
  std::string dump_trouble = {};  // reason why there is no folder
  double seconds = 0;
  bool trivial = false;  // the row is marked: a pass proves little
  std::map<std::string, std::int64_t, std::less<>> features =
      {};  // of a decode step: number of steps per feature
};

// Why and how a run ended before its last case.
struct Interruption {
  std::string why;  // "SIGINT", "cannot start a worker process: Too many open files"
  int exit_code = 0;
  std::size_t cases = 0;  // number of selected cases
};
// "interrupted by SIGINT: 5 of 40 cases done"
std::string text_of(const Interruption& interruption, std::size_t done);

struct Style {
  bool color = false;
  std::string paint(std::string_view text, std::string_view code) const;
};
// Colour as process::has_color() says.
Style style_of(int file_descriptor);

// Text about a failed, untrusted or unexpectedly passing case; "" for a pass.
std::string failure_text(const Finished& finished, const Style& style);

// Counts per outcome, slowest cases, time per phase.
std::string summary_text(const std::vector<Finished>& all, double seconds, const Style& style);

// The declaration under which most failed cases of an op are right. Of several, the smallest.
struct MissingDeclaration {
  std::string op;
  cases::Alternative declaration;
  int right = 0, failed = 0;  // numbers of cases

  // "21 of 23 failed cases of rms_norm are right under rounding = twice: declare …"
  std::string text() const;
};
// Over all platforms, or for one.
std::vector<MissingDeclaration> missing_declarations(const std::vector<Finished>& all,
                                                     std::string_view platform = {});

// Cases that judged a sample of their rows, and the sum of the samples.
struct SampledCases {
  int cases = 0;
  cases::Sample sum;
};
SampledCases sampled_cases(const std::vector<Finished>& all);

// Whether cases passed, but all of them belong to trivial rows: rows marked because a pass proves
// little.
bool proves_nothing(const std::vector<Finished>& all);
// 1: a case failed or was untrusted. 2: no case passed, failed or was a known bug; all were
// skipped. 0: otherwise.
int exit_code(const std::vector<Finished>& all);

// A shard of a run: its index, and the numbers (from 0) of its cases in the whole run.
struct ShareOfRun {
  std::size_t index = 0, total = 1;
  std::vector<std::size_t> numbers = {};
};

// Where and when a run was, name and text (tools/run/run_origin.h).
using RunOrigin = std::vector<std::pair<std::string, std::string>>;
// "" without such a name.
std::string text_of(const RunOrigin& origin, std::string_view name);

struct RunReport {
  std::vector<Finished> all;
  std::string tier = "default";
  std::uint64_t seed = 0;
  std::optional<PluginInfo> plugin = {};
  std::optional<Interruption> interruption = {};
  RunOrigin origin = {};
  std::optional<ShareOfRun> share = {};
  std::optional<int> code = {};       // replaces exit_code(all)
  std::int64_t without_pictures = 0;  // cases whose pictures were left out when written
};

// An interrupted run has the member "interrupted" and its exit code. Equal runs give equal text,
// except for members named "seconds" and for "run", which has the origin.
std::string to_json(const RunReport& report);
// One case of the report, on one line.
std::string to_json_line(const Finished& finished);
std::string escape_xml(std::string_view text);
std::string to_junit(const std::vector<Finished>& all,
                     const std::optional<Interruption>& interruption = std::nullopt);

// Throws UsageError if the file cannot be created. Leaves no file behind.
void check_writable(const std::string& path);
// Writes a temporary file next to `path` and renames it, so that a full disk keeps the old file.
// Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);

}  // namespace plumb::tools
