// SPDX-License-Identifier: Apache-2.0
//
// Which rows of the default tier see a mutant, for each of mutants/ and unseen/.
//   plumb_kill_table [--all] [PART_OF_A_NAME...]
// A line per mutant: its name, its op, how many rows see it, and which. Without --all, two rows are
// enough. Exit code 1: a mutant is seen by no row; 2: it cannot run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"
#include "faults/faults.h"
#include "plumb_unseen_list.h"
#include "process/ordered_map.h"
#include "process/own_program.h"
#include "process/run.h"

namespace plumb::device {
#define PLUMB_DECLARE_UNSEEN(name, op) \
  namespace mutant_##name {            \
    device::OpEntry op();              \
  }
PLUMB_FOR_EACH_UNSEEN(PLUMB_DECLARE_UNSEEN)
#undef PLUMB_DECLARE_UNSEEN
}  // namespace plumb::device

namespace plumb::cases {

namespace {

constexpr double kMostSeconds = 600;  // of one mutant: one that hangs is seen
constexpr std::string_view kOne = "--one", kAll = "--all";

std::vector<Mutant> every_mutant() {
  std::vector<Mutant> all = all_mutants();
  const auto add = [&](std::string_view name, std::string_view op, const device::OpEntry& entry) {
    Mutant& mutant = all.emplace_back();
    mutant.name = name;
    mutant.op = op;
    mutant.platforms = {"sim-sm90", "sim-gfx942", "sim-gfx950"};
    mutant.entry = entry;
  };
#define PLUMB_ADD_UNSEEN(name, op) add(#name, #op, device::mutant_##name::op());
  PLUMB_FOR_EACH_UNSEEN(PLUMB_ADD_UNSEEN)
#undef PLUMB_ADD_UNSEEN
  return all;
}

// "row/scenario" of each row that sees it, the first scenario of each.
std::vector<std::string> rows_that_see(const Mutant& mutant, std::size_t enough) {
  std::vector<std::string> found;
  std::set<std::string> rows;
  for (const std::string& platform : mutant.platforms) {
    RunOptions options;
    options.platform = platform;
    options = with_mutant(options, mutant);
    for (const Case& which : all_cases()) {
      if (found.size() == enough) return found;
      if (which.op->name != mutant.op || which.tier() > Tier::standard) continue;
      if (rows.contains(which.row.name)) continue;
      const CaseResult result = run_case(which, options);
      if (result.outcome != Outcome::failed) continue;
      rows.insert(which.row.name);
      found.push_back(
          fmt::format("{}/{} {}", which.row.name, which.scenario->name, result.platform));
    }
  }
  return found;
}

int run_one(std::string_view name, bool all) {
  for (const Mutant& mutant : every_mutant()) {
    if (mutant.name != name) continue;
    const auto rows = rows_that_see(mutant, all ? 1U << 20 : 2);
    fmt::print("{} rows: {}\n", rows.size(), fmt::join(rows, ", "));
    return rows.empty() ? 1 : 0;
  }
  return 2;
}

struct MutantLine {
  std::string text;
  bool seen;
};

MutantLine line_of(const Mutant& mutant, bool all) {
  process::Command command;
  command.words = {process::own_program(), std::string(kOne), std::string(mutant.name)};
  if (all) command.words.emplace_back(kAll);
  const process::Ended ended = process::run_to_end(command, {.timeout = kMostSeconds});
  std::string said = ended.out.substr(0, ended.out.find('\n'));
  if (!ended.timed_out && ended.signal == 0 && ended.code == 2) throw std::runtime_error(ended.err);
  const bool finished = ended.ok() || said.starts_with("0 rows");
  if (!finished) said = "1 row, in which it " + ended.how();
  return {fmt::format("{}  {}  {}", mutant.name, mutant.op, said), !said.starts_with("0 rows")};
}

int run(std::span<const std::string_view> words) {
  const bool all = std::ranges::find(words, kAll) != words.end();
  if (words.size() >= 2 && words[0] == kOne) return run_one(words[1], all);
  std::vector<Mutant> chosen;
  for (const Mutant& mutant : every_mutant()) {
    const auto is_part = [&](std::string_view word) {
      return mutant.name.find(word) != std::string_view::npos;
    };
    const bool named = std::ranges::any_of(words, is_part);
    if (named || words.size() == static_cast<std::size_t>(all)) chosen.push_back(mutant);
  }
  std::size_t seen = 0;
  process::OrderedMap<MutantLine> map(
      chosen.size(), [&] { return [&](std::size_t i) { return line_of(chosen[i], all); }; });
  map.run(static_cast<int>(std::thread::hardware_concurrency()),
          [&](std::size_t, MutantLine&& line) {
            seen += line.seen;
            fmt::print("{}\n", line.text);
            std::fflush(stdout);
          });
  fmt::print("{} of {} mutants are seen\n", seen, chosen.size());
  return seen == chosen.size() ? 0 : 1;
}

}  // namespace

}  // namespace plumb::cases

int main(int count, char** words) try {
  plumb::process::remember_command_line(count, words);
  const std::vector<std::string_view> arguments(words + 1, words + count);
  return plumb::cases::run(arguments);
} catch (const std::exception& error) {
  fmt::print(stderr, "plumb_kill_table: {}\n", error.what());
  return 2;
}
