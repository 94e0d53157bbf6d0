// SPDX-License-Identifier: Apache-2.0
#include "tools/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace plumb::tools {

namespace {

struct Table {
  std::vector<std::string> platforms;  // in the order of the run
  std::map<std::pair<std::string, std::string>, std::map<std::string, int>> cells;
};

Table count_cases(const std::vector<Finished>& all) {
  Table table;
  for (const Finished& f : all) {
    const std::string& platform = f.result.platform;
    if (std::find(table.platforms.begin(), table.platforms.end(), platform) ==
        table.platforms.end()) {
      table.platforms.push_back(platform);
    }
    table.cells[{f.op, f.scenario}][platform] += f.result.comparisons > 0;
  }
  return table;
}

int cell_of(const std::map<std::string, int>& cells, const std::string& platform) {
  const auto cell = cells.find(platform);
  return cell == cells.end() ? 0 : cell->second;
}

}  // namespace

std::string coverage_text(const std::vector<Finished>& all) {
  const Table table = count_cases(all);
  std::size_t width = 28;
  for (const auto& [key, cells] : table.cells) width = std::max(width, key.first.size() + 2);
  std::string text = fmt::format(
      "\ncoverage: cases with at least one compared element\n{:<{}}{:<14}", "", width, "");
  for (const std::string& platform : table.platforms) text += fmt::format("{:>13}", platform);
  text += "\n";
  for (const auto& [key, cells] : table.cells) {
    text += fmt::format("{:<{}}{:<14}", key.first, width, key.second);
    for (const std::string& platform : table.platforms) {
      text += fmt::format("{:>13}", cell_of(cells, platform));
    }
    text += "\n";
  }
  return text;
}

std::string features_text(const std::vector<Finished>& all) {
  const Table table = count_cases(all);
  std::map<std::string, std::map<std::string, std::int64_t>> steps;
  for (const Finished& f : all) {
    for (const auto& [feature, count] : f.features) steps[feature][f.result.platform] += count;
  }
  if (steps.empty()) return "";
  std::string text = fmt::format("\n{:<42}", "decode steps by event");
  for (const std::string& platform : table.platforms) text += fmt::format("{:>13}", platform);
  text += "\n";
  for (auto& [feature, counts] : steps) {
    text += fmt::format("{:<42}", feature);
    for (const std::string& platform : table.platforms) {
      text += fmt::format("{:>13}", counts[platform]);
    }
    text += "\n";
  }
  return text;
}

std::vector<std::string> thin_coverage(const std::vector<Finished>& all, int least) {
  Table table = count_cases(all);
  for (const Finished& f : all) {
    for (const char* scenario : {"eager", "full_graph", "concurrent", "queued"}) {
      table.cells[{f.op, scenario}];
    }
  }
  std::vector<std::string> thin;
  for (const auto& [key, cells] : table.cells) {
    for (const std::string& platform : table.platforms) {
      const int cases = cell_of(cells, platform);
      // Few rows have concurrent cases before the full tier, and only they have queued ones, so one
      // case is enough there.
      const bool few = key.second.starts_with("concurrent") || key.second == "queued";
      if (cases >= (few ? std::min(least, 1) : least)) continue;
      thin.push_back(fmt::format("{} {} {}: {}", key.first, key.second, platform, cases));
    }
  }
  return thin;
}

}  // namespace plumb::tools
