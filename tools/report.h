// SPDX-License-Identifier: Apache-2.0
//
// What a run prints and writes: failures, summary, coverage table, JSON, JUnit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/checks/findings.h"
#include "golden/compare.h"
#include "tools/plugin.h"
#include "tools/run/failure_picture.h"

namespace plumb::tools {

// A finished case and the line that repeats it.
struct Finished {
  cases::CaseResult result;
  std::vector<cases::Finding> findings = {};  // of a decode step: the failure for machines
  golden::GoldenComparison golden;
  std::string op, row, scenario;
  std::string reproduce;
  std::vector<std::string> contrast = {};    // what fails and what passes, a statement a line
  std::vector<std::string> notes = {};       // what the plug-in did that does not fail the case
  std::vector<TensorPicture> pictures = {};  // of wrong tensors, if the case is of an op
  std::string dump = {};          // folder of the failed launch's tensors (--dump); "": none
  std::string dump_trouble = {};  // why there is none
  double seconds = 0;
  bool trivial = false;  // its row says that a pass proves little
  std::map<std::string, std::int64_t, std::less<>> features =
      {};  // of a decode step: how many did so
};

// A run that ended before its last case.
struct Interruption {
  std::string why;  // "SIGINT", "cannot start a worker process: Too many open files"
  int exit_code = 0;
  std::size_t cases = 0;  // that were selected
};
// "interrupted by SIGINT: 5 of 40 cases done"
std::string text_of(const Interruption& interruption, std::size_t done);

struct Style {
  bool color = false;
  std::string paint(std::string_view text, std::string_view code) const;
};
// Colour on a terminal, unless NO_COLOR is set.
Style style_of(int file_descriptor);

// The block that a failed, untrusted or unexpectedly passing case prints; "" for a pass.
std::string failure_text(const Finished& finished, const Style& style);

// Counts per outcome, slowest cases, time per phase.
std::string summary_text(const std::vector<Finished>& all, double seconds, const Style& style);

// The declaration under which most of an op's failed cases are right. Of several the smallest.
struct MissingDeclaration {
  std::string op;
  cases::Alternative declaration;
  int right = 0, failed = 0;  // cases

  // "21 of 23 failed cases of rms_norm are right under rounding = twice: declare …"
  std::string text() const;
};
// Of all platforms, or of one.
std::vector<MissingDeclaration> missing_declarations(const std::vector<Finished>& all,
                                                     std::string_view platform = {});

// Cases that judged a sample of their rows, and what of these.
struct SampledCases {
  int cases = 0;
  cases::Sample sum;
};
SampledCases sampled_cases(const std::vector<Finished>& all);

// 0 all passed, 1 something failed or was untrusted, 2 nothing but skips.
// Passed cases, all of rows that say that a pass proves little.
bool proves_nothing(const std::vector<Finished>& all);
int exit_code(const std::vector<Finished>& all);

// A share of a run: which of the whole run's cases, numbered from 0, these are.
struct ShareOfRun {
  std::size_t index = 0, total = 1;
  std::vector<std::size_t> numbers = {};
};

struct RunReport {
  std::vector<Finished> all;
  std::string tier = "default";
  std::uint64_t seed = 0;
  std::optional<PluginInfo> plugin = {};
  std::optional<Interruption> interruption = {};
  // Where and when it ran, name and text (tools/run/run_origin.h).
  std::vector<std::pair<std::string, std::string>> origin = {};
  std::optional<ShareOfRun> share = {};
  std::optional<int> code = {};       // in place of exit_code(all)
  std::int64_t without_pictures = 0;  // cases whose pictures were left out when they were written
};

// Machine-readable. An interrupted run has the member "interrupted" and its exit code. Equal runs
// give equal text but for the members named "seconds", and "run", which has the origin.
std::string to_json(const RunReport& report);
// One case of it, on one line.
std::string to_json_line(const Finished& finished);
std::string escape_xml(std::string_view text);
std::string to_junit(const std::vector<Finished>& all,
                     const std::optional<Interruption>& interruption = std::nullopt);

// Throws UsageError if a file of this name cannot be made. Leaves nothing behind.
void check_writable(const std::string& path);
// Writes beside `path` and renames, so that a full disk leaves the old file. Throws
// std::runtime_error.
void write_file(const std::string& path, const std::string& text);

}  // namespace plumb::tools
