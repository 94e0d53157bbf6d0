// SPDX-License-Identifier: Apache-2.0
#include "tools/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cases/case_file.h"
#include "device/device.h"

namespace plumb::tools {

namespace {

cases::Tier parse_tier(const std::string& name) {
  if (name == "smoke") return cases::Tier::smoke;
  if (name.empty() || name == "default") return cases::Tier::standard;
  if (name == "full") return cases::Tier::full;
  throw UsageError(fmt::format("--tier is smoke, default or full, not \"{}\"", name));
}

bool in_tier(const cases::Case& which, cases::Tier tier) { return which.row.tier <= tier; }

// A pattern that spells a whole case runs it in whatever tier it lies.
bool names_exactly(const std::string& pattern, const std::string& id) { return pattern == id; }

bool is_selected(const cases::Case& which, const Selection& selection, cases::Tier tier) {
  const std::string id = which.id();
  if (!selection.ops.empty() && std::find(selection.ops.begin(), selection.ops.end(),
                                          which.op->name) == selection.ops.end()) {
    return false;
  }
  if (selection.patterns.empty()) return in_tier(which, tier);
  return std::any_of(selection.patterns.begin(), selection.patterns.end(), [&](const auto& pattern) {
    return cases::matches(pattern, id) && (in_tier(which, tier) || names_exactly(pattern, id));
  });
}

void apply_settings(const std::vector<std::string>& settings, cases::Case& which) {
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("--set wants name=value, not \"{}\"", setting));
    }
    cases::set_parameter(*which.op, which.row, setting.substr(0, equals), setting.substr(equals + 1));
  }
}

std::vector<std::string> choose_platforms(const std::vector<std::string>& asked) {
  const std::vector<std::string> known = device::known_platforms();
  std::vector<std::string> chosen;
  for (const std::string& platform : asked) {
    if (platform == "all") return known;
    if (std::find(known.begin(), known.end(), platform) == known.end()) {
      const std::string nearest = cases::nearest_name(platform, known);
      throw UsageError(fmt::format("unknown platform \"{}\"{}; known: {}", platform,
                                   nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                   fmt::join(known, ", ")));
    }
    if (std::find(chosen.begin(), chosen.end(), platform) == chosen.end()) chosen.push_back(platform);
  }
  if (!asked.empty()) return chosen;
  std::copy_if(known.begin(), known.end(), std::back_inserter(chosen),
               [](const std::string& name) { return name.starts_with("sim-"); });
  return chosen;
}

std::string what_was_asked(const Selection& selection) {
  std::string text;
  for (const std::string& pattern : selection.patterns) text += " --case " + pattern;
  for (const std::string& op : selection.ops) text += " --op " + op;
  if (!selection.tier.empty()) text += " --tier " + selection.tier;
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) throw UsageError(fmt::format("cannot read {}", path));
  return text.str();
}

Selected select(const Selection& selection) {
  for (const std::string& op : selection.ops) cases::find_op(op);
  std::vector<cases::CaseFile> overrides;
  for (const std::string& path : selection.case_files) overrides.push_back({path, read_file(path)});

  Selected selected;
  selected.tier = parse_tier(selection.tier);
  selected.platforms = choose_platforms(selection.platforms);
  std::vector<std::string> ids;
  for (cases::Case& which : cases::all_cases(overrides)) {
    ids.push_back(which.id());
    if (!is_selected(which, selection, selected.tier)) continue;
    apply_settings(selection.settings, which);
    selected.cases.push_back(std::move(which));
  }
  if (selected.cases.empty()) {
    const std::string nearest =
        selection.patterns.empty() ? "" : cases::nearest_name(selection.patterns.front(), ids);
    throw UsageError(fmt::format("no case matches{}{}", what_was_asked(selection),
                                 nearest.empty() ? "; plumb list shows them"
                                                 : fmt::format(" (did you mean {}?)", nearest)));
  }
  return selected;
}

std::string repeated_options(const Selection& selection, std::uint64_t seed) {
  std::string text;
  if (!selection.tier.empty() && selection.tier != "default") text += " --tier " + selection.tier;
  for (const std::string& file : selection.case_files) text += " --cases " + file;
  for (const std::string& setting : selection.settings) text += " --set " + setting;
  if (seed != 0) text += fmt::format(" --seed {}", seed);
  return text;
}

}  // namespace plumb::tools
