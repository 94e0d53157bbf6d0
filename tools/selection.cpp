// SPDX-License-Identifier: Apache-2.0
#include "tools/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "cases/recorded/recorded_file.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tables/case_file.h"
#include "device/device.h"
#include "process/shell.h"
#include "tools/own_ops_file.h"

namespace plumb::tools {

namespace {

cases::Tier parse_tier(const std::string& name) {
  if (name == "smoke") return cases::Tier::smoke;
  if (name.empty() || name == "default") return cases::Tier::standard;
  if (name == "full") return cases::Tier::full;
  throw UsageError(fmt::format("--tier is smoke, default or full, not \"{}\"", name));
}

// A pattern that is a whole case name selects the case in any tier.
bool names_exactly(const std::string& pattern, const std::string& id) { return pattern == id; }

void apply_settings(const std::vector<std::string>& settings, cases::AnyCase& which) {
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("--set wants name=value, not \"{}\"", setting));
    }
    which.set_parameter(setting.substr(0, equals), setting.substr(equals + 1));
  }
}

std::string what_was_asked(const Selection& selection) {
  std::string text;
  for (const std::string& pattern : selection.patterns)
    text += " --case " + process::shell_quoted(pattern);
  for (const std::string& op : selection.ops) text += " --op " + process::shell_quoted(op);
  if (!selection.tier.empty()) text += " --tier " + selection.tier;
  return text;
}

void require_op(const std::string& op) {
  try {
    cases::find_schema(op);
  } catch (const cases::BadRow& error) {
    throw NotInThisBuild(error.what());
  }
}

// Larger files are refused (recorded calls have their own limit). A device file may have no end.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// Whether the file is a recorded call. If it cannot be read, read_file() reports it later.
bool has_recorded_call(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(64, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return cases::is_recorded_file(begin);
}

// A pipe has its bytes once, and every worker process reads the file again.
void require_regular_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || std::filesystem::is_regular_file(status)) return;
  if (std::filesystem::is_directory(status)) return;  // read_file() says so
  throw UsageError(
      fmt::format("cannot read {}: --cases wants a regular file", process::shell_quoted(path)));
}

cases::CaseFile read_case_file(const std::string& path) {
  if (!has_recorded_call(path)) return {path, read_file(path)};
  return cases::take_recorded(read_file(path, cases::kMostRecordedBytes), path);
}

std::vector<cases::CaseFile> read_case_files(const std::vector<std::string>& paths) {
  std::vector<cases::CaseFile> files;
  std::map<std::string, bool> recorded;  // by op: whether its first file is a recorded row
  for (const std::string& path : paths) {
    const cases::CaseFile file = read_case_file(path);
    const std::string op = cases::op_of_case_file(file.text, path);
    try {
      cases::find_schema(op);
    } catch (const cases::BadRow& error) {
      throw cases::BadRow(fmt::format("{}: {}", path, error.what()));
    }
    const bool is_recorded = has_recorded_call(path);
    const auto [first, is_new] = recorded.emplace(op, is_recorded);
    if (!is_new && !(is_recorded && first->second)) {
      throw UsageError(fmt::format("{}: a second file for {}", path, op));
    }
    // A recorded row has a digest in its name, so equal texts are the same call.
    const bool again = std::ranges::any_of(
        files, [&](const cases::CaseFile& other) { return other.text == file.text; });
    if (!again) files.push_back(file);
  }
  return files;
}

bool is_known(const std::string& op) {
  const auto& ops = cases::all_ops();
  const auto has_name = [&](const cases::OpDefinition& one) { return one.name == op; };
  return op == cases::kDecodeStep || std::ranges::any_of(ops, has_name);
}

// Ops that the command line spells out, so that the rows of other ops need not be read. Empty: any
// op is possible.
std::vector<std::string> spelt_ops(const Selection& selection) {
  if (!selection.case_files.empty()) return {};  // the files themselves are read later
  if (!selection.ops.empty()) return selection.ops;
  std::vector<std::string> ops;
  for (const std::string& pattern : selection.patterns) {
    ops.push_back(pattern.substr(0, pattern.find('/')));
    if (!is_known(ops.back())) return {};
  }
  return ops;
}

// If only files of recorded calls are given, only their cases run.
Selection with_recorded_cases(Selection selection) {
  std::ranges::for_each(selection.case_files, require_regular_file);
  if (!selection.patterns.empty() || !selection.ops.empty() || selection.case_files.empty()) {
    return selection;
  }
  if (!std::ranges::all_of(selection.case_files, has_recorded_call)) return selection;
  for (const cases::CaseFile& file : read_case_files(selection.case_files)) {
    selection.ops.push_back(cases::op_of_case_file(file.text, file.name));
  }
  return selection;
}

class KnownCases {
 public:
  KnownCases(const Selection& selection, CaseKinds kinds)
      : files_(read_case_files(selection.case_files)), kinds_(kinds) {}

  std::vector<cases::AnyCase> of(const std::vector<std::string>& ops) const {
    if (kinds_ == CaseKinds::ops_and_decode_steps) return cases::cases_of_all_kinds(files_, ops);
    const std::vector<cases::Case> of_ops = cases::op_cases(files_, ops);
    return {of_ops.begin(), of_ops.end()};
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const cases::AnyCase& which : of({})) ids.push_back(which.id());
    return ids;
  }

 private:
  std::vector<cases::CaseFile> files_;
  CaseKinds kinds_;
};

// The names with as many parts as the pattern: ops, rows of ops, or cases. Empty if none is near.
std::string nearest_to(const std::string& pattern, const std::vector<std::string>& ids) {
  std::set<std::string> names;
  for (const std::string& id : ids) {
    std::size_t end = id.find('/');
    for (auto more = std::ranges::count(pattern, '/'); more > 0 && end != id.npos; --more) {
      end = id.find('/', end + 1);
    }
    names.insert(id.substr(0, end));
  }
  return cases::nearest_name(pattern, {names.begin(), names.end()});
}

// `ids`: names of all cases.
[[noreturn]] void refuse_selection(const Selection& selection,
                                   const std::vector<std::string>& ids) {
  const auto outside = std::count_if(ids.begin(), ids.end(), [&](const std::string& id) {
    return std::any_of(selection.patterns.begin(), selection.patterns.end(),
                       [&](const auto& pattern) { return cases::matches(pattern, id); });
  });
  if (outside > 0 && selection.ops.empty()) {
    throw NotInThisBuild(fmt::format(
        "{} case{} match{}{}, none of them in this tier; --tier full runs them", outside,
        outside == 1 ? "" : "s", outside == 1 ? "es" : "", what_was_asked(selection)));
  }
  const std::string nearest =
      selection.patterns.empty() ? "" : nearest_to(selection.patterns.front(), ids);
  throw NotInThisBuild(fmt::format(
      "no case matches{}{}", what_was_asked(selection),
      nearest.empty() ? "; plumb list shows them" : fmt::format(" (did you mean {}?)", nearest)));
}

// Refuses the first pattern that matches no case. `ids`: names of all cases.
void refuse_unmatched(Selection selection, const std::vector<std::string>& patterns,
                      const std::vector<std::string>& ids) {
  for (const std::string& pattern : patterns) {
    const auto is_named = [&](const std::string& id) { return cases::matches(pattern, id); };
    if (std::ranges::any_of(ids, is_named)) continue;  // perhaps only ops that --op excludes
    selection.patterns = {pattern};
    refuse_selection(selection, ids);
  }
}

bool is_selected(const cases::AnyCase& which, const Selection& selection, cases::Tier tier) {
  const std::string id = which.id();
  const auto& ops = selection.ops;
  if (!ops.empty() && std::find(ops.begin(), ops.end(), which.op()) == ops.end()) return false;
  const auto in_tier = [&] { return which.tier(!selection.plugin.empty()) <= tier; };
  if (selection.patterns.empty()) return in_tier();
  return std::any_of(
      selection.patterns.begin(), selection.patterns.end(), [&](const std::string& pattern) {
        return names_exactly(pattern, id) || (cases::matches(pattern, id) && in_tier());
      });
}

}  // namespace

std::string read_file(const std::string& path) { return read_file(path, kMostBytes); }

std::string read_file(const std::string& path, std::size_t most) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("cannot read {}: {}", process::shell_quoted(path), why));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("it is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(std::strerror(errno));
  std::string text;
  constexpr std::size_t kPart = std::size_t{1} << 20;
  for (std::size_t size = 0; file && size <= most; size = text.size()) {
    text.resize(size + kPart);
    file.read(text.data() + size, static_cast<std::streamsize>(kPart));
    text.resize(size + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) refuse(std::strerror(errno));
  if (text.size() > most) refuse(fmt::format("it has more than {} MiB", most >> 20));
  return text;
}

std::vector<std::string> choose_platforms(const std::vector<std::string>& asked) {
  const std::vector<std::string> known = device::known_platforms();
  std::vector<std::string> chosen;
  for (const std::string& platform : asked) {
    if (platform == "all") return known;
    if (std::find(known.begin(), known.end(), platform) == known.end()) {
      const std::string nearest = cases::nearest_name(platform, known);
      throw UsageError(
          fmt::format("unknown platform \"{}\"{}; known: {}", platform,
                      nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                      fmt::join(known, ", ")));
    }
    if (std::find(chosen.begin(), chosen.end(), platform) == chosen.end())
      chosen.push_back(platform);
  }
  if (!asked.empty()) return chosen;
  std::copy_if(known.begin(), known.end(), std::back_inserter(chosen),
               [](const std::string& name) { return name.starts_with("sim-"); });
  return chosen;
}

bool is_real(const std::string& platform) {
  return device::why_unavailable(platform).empty() &&
         !device::open_device(platform)->properties().simulated;
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && stop == end) return seed;
  throw UsageError(fmt::format("--seed is a whole number of 0 .. 2^64 - 1, not \"{}\"", text));
}

SelectedAny select_any(const Selection& asked, CaseKinds kinds) {
  add_ops_of(asked.own_ops);
  const Selection selection = with_recorded_cases(asked);
  SelectedAny selected;
  selected.tier = parse_tier(selection.tier);
  selected.platforms = choose_platforms(selection.platforms);
  for (const std::string& op : selection.ops) require_op(op);
  const KnownCases known(selection, kinds);
  std::vector<std::string> unmatched = selection.patterns;
  for (cases::AnyCase& which : known.of(spelt_ops(selection))) {
    const std::string id = which.id();
    std::erase_if(unmatched, [&](const auto& pattern) { return cases::matches(pattern, id); });
    if (!is_selected(which, selection, selected.tier)) continue;
    apply_settings(selection.settings, which);
    selected.cases.push_back(std::move(which));
  }
  if (!unmatched.empty()) refuse_unmatched(selection, unmatched, known.ids());
  if (selected.cases.empty()) refuse_selection(selection, known.ids());
  return selected;
}

Selected select(const Selection& selection) {
  const SelectedAny any = select_any(selection, CaseKinds::ops);
  Selected selected{{}, any.platforms, any.tier};
  for (const cases::AnyCase& which : any.cases) selected.cases.push_back(*which.of_op());
  return selected;
}

std::string repeated_options(const Selection& selection, std::uint64_t seed) {
  std::string text;
  if (!selection.tier.empty() && selection.tier != "default") text += " --tier " + selection.tier;
  for (const std::string& file : selection.own_ops) text += " --ops " + process::shell_quoted(file);
  if (!selection.plugin.empty()) text += " --plugin " + process::shell_quoted(selection.plugin);
  if (!selection.point.empty()) text += " --point " + process::shell_quoted(selection.point);
  for (const std::string& pattern : selection.kernels) {
    text += " --expect-kernel " + process::shell_quoted(pattern);
  }
  for (const std::string& file : selection.case_files)
    text += " --cases " + process::shell_quoted(file);
  for (const std::string& setting : selection.settings)
    text += " --set " + process::shell_quoted(setting);
  if (seed != 0) text += fmt::format(" --seed {}", seed);
  return text;
}

}  // namespace plumb::tools
