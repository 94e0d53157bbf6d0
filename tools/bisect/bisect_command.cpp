// SPDX-License-Identifier: Apache-2.0
//
// Functions that the subcommands of plumb bisect share, and plumb bisect explain.
#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "bisect/search/search.h"
#include "device/plain_line.h"
#include "hdf5/digest.h"
#include "process/shell.h"
#include "tools/bisect/bisect_arguments.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// File name derived from the question, so that the same question finds its answers again.
std::string state_file(const BisectSearchArguments& arguments, const json& question) {
  if (arguments.state) return *arguments.state;
  const std::string text = question.dump(-1, ' ', false, json::error_handler_t::replace);
  return fmt::format("plumb-bisect-{:08x}.jsonl",
                     static_cast<std::uint32_t>(XXH3_64bits(text.data(), text.size())));
}

// Empty if the file cannot be read.
std::string digest_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  hdf5::DigestOfParts digest;
  std::array<char, 1 << 16> part;
  while (file.read(part.data(), part.size()), file.gcount() > 0) {
    digest.add(std::as_bytes(std::span(part).first(static_cast<std::size_t>(file.gcount()))));
  }
  return digest.digits();
}

}  // namespace

json digests_of(const bisect::Question& run) {
  json digests{{"plumb", digest_of_file("/proc/self/exe")}};
  std::vector<std::string> files = run.case_files;
  files.insert(files.end(), run.own_ops.begin(), run.own_ops.end());
  if (!run.plugin.empty()) files.push_back(run.plugin);
  for (const std::string& file : files) digests[file] = digest_of_file(file);
  return digests;
}

CaseKinds kinds_of(const bisect::Question& run) {
  return run.plugin.empty() ? CaseKinds::ops_and_decode_steps : CaseKinds::ops;
}

void check_search(const BisectSearchArguments& arguments, bool here) {
  parse_seed(arguments.run.seed);
  if (!arguments.run.platform.empty()) choose_platforms({arguments.run.platform});
  if (!arguments.json.empty()) check_writable(arguments.json);
  if (!here) return;
  Selection selection;
  selection.patterns = {arguments.run.which};
  selection.settings = arguments.run.settings;
  selection.case_files = arguments.run.case_files;
  selection.own_ops = arguments.run.own_ops;
  select_any(selection, kinds_of(arguments.run));
}

std::unique_ptr<bisect::Journal> open_journal(const BisectSearchArguments& arguments,
                                              const std::string& command, const json& question,
                                              bisect::Progress& progress) {
  const std::string file = state_file(arguments, question);
  if (!file.empty()) check_writable(file);
  auto journal = std::make_unique<bisect::Journal>(file, command, question);
  if (journal->cut())
    progress.line(file + ": its last line was cut off; this question is asked again");
  if (journal->remembered() > 0) {
    progress.line(fmt::format("{} answers are remembered in {}", journal->remembered(), file));
  }
  return journal;
}

int run_search(const BisectSearchArguments& arguments, const bisect::Journal& journal,
               const std::function<ordered_json()>& search) {
  ordered_json report;
  int code = 0;
  try {
    const bisect::Interrupts interrupts;
    report = search();
  } catch (const bisect::Undecided& undecided) {
    report = {{"schema", 1}, {"undecided", undecided.what()}};
    code = 1;
    print_error(device::plain_line(undecided.what()));
  } catch (const bisect::Interrupted& interrupted) {
    const bool kept = !journal.path().empty();
    throw std::runtime_error(fmt::format("{}; {}", interrupted.what(),
                                         kept ? "the same command continues from " + journal.path()
                                              : "no answer was kept (--state \"\")"));
  }
  report["exit_code"] = code;
  if (!arguments.json.empty()) {
    write_file(arguments.json,
               report.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  }
  return code;
}

std::string failure_text(const bisect::Answer& answer) {
  if (!answer.failed.is_object()) return "    " + answer.reason + "\n";
  std::string text = fmt::format("{} on {}\n", answer.failed.at("case").get<std::string>(),
                                 answer.failed.at("platform").get<std::string>());
  const json failures = answer.failed.value("failures", json::array());
  if (!failures.empty()) {
    for (const json& line : failures[0].value("lines", json::array())) {
      text += "    " + line.get<std::string>() + "\n";
    }
    text += "    at " + failures[0].value("context", "") + "\n";
  }
  const std::string diagnosis = answer.failed.value("diagnosis", "");
  // Drops the sentence about the pattern of wrong rows if the lines above contain it already.
  const std::size_t pattern = diagnosis.find("; ");
  const bool repeats =
      pattern != std::string::npos &&
      text.find("    " + diagnosis.substr(pattern + 2) + "\n") != std::string::npos;
  const std::string said = repeats ? diagnosis.substr(0, pattern) : diagnosis;
  if (!said.empty()) text += "    " + said + "\n";
  for (const json& line : answer.failed.value("contrast", json::array())) {
    text += "    " + line.get<std::string>() + "\n";
  }
  return text;
}

ordered_json common_json(const bisect::SequenceResult& result) {
  return {{"failure", to_json(result.failure)},
          {"builds", result.builds},
          {"failed_builds", result.failed_builds},
          {"runs", result.runs},
          {"rate", result.rate},
          {"warnings", result.warnings}};
}

std::string as_program(const std::string& path) {
  const bool here = path.find('/') == std::string::npos;
  return process::shell_quoted(here ? "./" + path : path);
}

std::string as_one_command(const std::string& command) {
  const bool plain = command.find_first_of(";|&#\n") == std::string::npos;
  return plain ? command : "sh -c " + process::shell_quoted(command);
}

int bisect_explain_command(const std::string& file) {
  put(explain(bisect::read_journal(file)));
  return 0;
}

}  // namespace plumb::tools
