// SPDX-License-Identifier: Apache-2.0
//
// Prints which rows of the default tier see each mutant (faults/mutants, faults/unseen): the case
// fails with it. With --lazy: each lazy kernel (plumb's own kernel with one added assumption,
// faults/lazy). With --rare: lazy kernels whose defect few launches show. No row has to see
// these, and they change no exit code.
//   plumb_kill_table [--all] [--lazy|--rare] [--sample N TEXT] [--cases FILE] [PART_OF_A_NAME...]
// Two rows have to see a mutant of faults/mutants, one row any other kernel. The search stops
// there, unless --all is given. --sample: tries N of the kernels, chosen by a hash with TEXT,
// without those that faults/excused.toml names. --cases: rows of FILE in place of the op's own.
// Exit code 1: too few rows see a kernel that excused.toml does not name, or a run without names
// and sample finds that an excuse is not needed. 2: it cannot run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"
#include "cases/tensors/toml.h"
#include "faults/faults.h"
#include "faults/lazy/lazy_kernels.h"
#include "process/ordered_map.h"
#include "process/own_program.h"
#include "process/run.h"

#ifdef PLUMB_UNSEEN
#include "plumb_unseen_list.h"
#else
#define PLUMB_FOR_EACH_UNSEEN(X)
#endif

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

constexpr double kMostSeconds = 600;  // per mutant; one that hangs counts as seen
constexpr std::string_view kOne = "--one";

struct Arguments {
  bool all = false, lazy = false, rare = false;
  std::size_t sample = 0;
  std::string seed, one, cases;
  std::vector<std::string> parts;
};

Arguments read(int count, char** words) {
  Arguments arguments;
  const auto next = [&](int& i) -> std::string {
    if (++i == count) throw std::runtime_error(fmt::format("{} needs a value", words[i - 1]));
    return words[i];
  };
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--all") {
      arguments.all = true;
    } else if (word == "--lazy") {
      arguments.lazy = true;
    } else if (word == "--rare") {
      arguments.lazy = arguments.rare = true;
    } else if (word == kOne) {
      arguments.one = next(i);
    } else if (word == "--cases") {
      arguments.cases = next(i);
    } else if (word == "--sample") {
      arguments.sample = std::stoul(next(i));
      arguments.seed = next(i);
    } else if (word.starts_with("-")) {
      throw std::runtime_error(word + " is no option");
    } else {
      arguments.parts.push_back(word);
    }
  }
  return arguments;
}

// A kernel that rows of its op have to see: a mutant, or a lazy kernel (plumb's own kernel with one
// added assumption, such as a dense stride; lazy_kernels.h).
struct Subject {
  std::string name, op, kind;
  std::vector<std::string> platforms;
  std::function<RunOptions(RunOptions, const Case&)> planted;
  // False: the case cannot see a difference, and is left out.
  std::function<bool(const Case&, const std::string& platform)> can_differ;
  std::size_t wanted = 1;  // so many rows must see it
};

const std::vector<std::string> kSimulated{"sim-sm90", "sim-gfx942", "sim-gfx950"};

std::vector<Subject> every_mutant() {
  std::vector<Mutant> all = all_mutants();
  const std::size_t of_the_library = all.size();
  [[maybe_unused]] const auto add = [&](std::string_view name, std::string_view op,
                                        const device::OpEntry& entry) {
    Mutant& mutant = all.emplace_back();
    mutant.name = name;
    mutant.op = op;
    mutant.platforms = kSimulated;
    mutant.entry = entry;
  };
#define PLUMB_ADD_UNSEEN(name, op) add(#name, #op, device::mutant_##name::op());
  PLUMB_FOR_EACH_UNSEEN(PLUMB_ADD_UNSEEN)
#undef PLUMB_ADD_UNSEEN
  std::vector<Subject> subjects;
  for (const Mutant& mutant : all) {
    subjects.push_back({std::string(mutant.name), std::string(mutant.op), "mutant",
                        mutant.platforms,
                        [mutant](RunOptions options, const Case&) {
                          return with_mutant(std::move(options), mutant);
                        },
                        [](const Case&, const std::string&) { return true; },
                        subjects.size() < of_the_library ? std::size_t{2} : std::size_t{1}});
  }
  return subjects;
}

// Lazy kernels of the op with which the name `of` begins ("rms_norm.eps.common"); "": of all ops.
std::vector<Subject> every_lazy_kernel(bool rare, std::string_view of = "") {
  std::vector<Subject> subjects;
  for (const OpDefinition& op : all_ops()) {
    if (!of.empty() && !of.starts_with(fmt::format("{}.", op.name))) continue;
    for (const LazyKernel& kernel : rare ? rare_lazy_kernels(op) : lazy_kernels(op)) {
      subjects.push_back({kernel.name(), std::string(op.name), std::string(name_of(kernel.kind)),
                          kSimulated,
                          [kernel](RunOptions options, const Case& which) {
                            return with_lazy_kernel(std::move(options), kernel, which);
                          },
                          [kernel](const Case& which, const std::string& platform) {
                            return can_differ(kernel, which, platform);
                          }});
    }
  }
  return subjects;
}

// "row/scenario platform" of each row that sees the subject: its first scenario that fails.
// `files`: rows in place of the op's own.
std::vector<std::string> rows_that_see(const Subject& subject, std::size_t enough,
                                       const std::vector<CaseFile>& files) {
  std::vector<std::string> found;
  std::set<std::string> rows;
  for (const std::string& platform : subject.platforms) {
    RunOptions options;
    options.platform = platform;
    for (const Case& which : cases_of(find_op(subject.op), files)) {
      if (found.size() == enough) return found;
      if (which.tier() > Tier::standard) continue;
      if (rows.contains(which.row.name) || !subject.can_differ(which, platform)) continue;
      const CaseResult result = run_case(which, subject.planted(options, which));
      if (result.outcome != Outcome::failed) continue;
      rows.insert(which.row.name);
      found.push_back(
          fmt::format("{}/{} {}", which.row.name, which.scenario->name, result.platform));
    }
  }
  return found;
}

int run_one(const Arguments& arguments) {
  std::vector<CaseFile> files;
  if (!arguments.cases.empty()) {
    std::ifstream file(arguments.cases);
    if (!file) throw std::runtime_error(arguments.cases + " cannot be read");
    files.push_back({arguments.cases, {std::istreambuf_iterator<char>(file), {}}});
  }
  for (const Subject& subject :
       arguments.lazy ? every_lazy_kernel(arguments.rare, arguments.one) : every_mutant()) {
    if (subject.name != arguments.one) continue;
    const auto rows = rows_that_see(subject, arguments.all ? 1U << 20 : subject.wanted, files);
    fmt::print("{} rows: {}\n", rows.size(), fmt::join(rows, ", "));
    return rows.size() < subject.wanted ? 1 : 0;
  }
  return 2;
}

// Reason why no row, or only one, can see the mutants of this name, which is a pattern of the
// shell. It may also match mutants that more rows see.
struct Excuse {
  std::string name, why;

  bool names(const Subject& subject) const {
    return fnmatch(name.c_str(), subject.name.c_str(), FNM_EXTMATCH) == 0;
  }
};

std::vector<Excuse> excuses() {
  std::vector<Excuse> all;
  const toml::table file = toml::parse_file(PLUMB_SOURCE_DIR "/faults/excused.toml");
  const toml::array* const listed = file["excused"].as_array();
  if (listed == nullptr) throw std::runtime_error("faults/excused.toml has no [[excused]]");
  for (const toml::node& node : *listed) {
    const toml::table& excused = *node.as_table();
    all.push_back({excused["name"].value<std::string>().value(),
                   excused["why"].value<std::string>().value()});
  }
  return all;
}

enum class Verdict { seen, excused, unseen };

struct SubjectLine {
  std::string text;
  Verdict verdict;
};

SubjectLine line_of(const Subject& subject, const Arguments& arguments) {
  static const std::vector<Excuse> known = excuses();
  const auto excuse =
      std::ranges::find_if(known, [&](const Excuse& one) { return one.names(subject); });
  const auto line = [&](const std::string& said) {
    return fmt::format("{}  {}  {}", subject.name, subject.op, said);
  };
  // An excused subject would run in every row, because at most one row sees it. Whether the excuse
  // is still needed is found in a run of all.
  if (arguments.sample != 0 && excuse != known.end()) {
    return {line("not run: " + excuse->why), Verdict::excused};
  }
  process::Command command;
  command.words = {process::own_program(), std::string(kOne), subject.name};
  if (arguments.all) command.words.emplace_back("--all");
  if (arguments.lazy) command.words.emplace_back(arguments.rare ? "--rare" : "--lazy");
  if (!arguments.cases.empty()) {
    command.words.insert(command.words.end(), {"--cases", arguments.cases});
  }
  const process::Ended ended = process::run_to_end(command, {.timeout = kMostSeconds});
  std::string said = ended.out.substr(0, ended.out.find('\n'));
  if (!ended.timed_out && ended.signal == 0 && ended.code == 2) throw std::runtime_error(ended.err);
  const bool few = !ended.timed_out && ended.signal == 0 && ended.code == 1;
  if (!ended.ok() && !few) said = "1 row, in which it " + ended.how();
  if (!few) return {line(said), Verdict::seen};
  if (excuse == known.end()) return {line(said), Verdict::unseen};
  return {line(said + ": " + excuse->why), Verdict::excused};
}

// Counts for each op and kind.
struct VerdictTable {
  std::map<std::pair<std::string, std::string>, std::map<Verdict, std::size_t>> counts;

  std::pair<std::size_t, std::size_t> sums() {
    std::size_t seen = 0, excused = 0;
    for (auto& [cell, of] : counts) seen += of[Verdict::seen], excused += of[Verdict::excused];
    return {seen, excused};
  }
  // A line per op, a column per kind: "3", "2+1 excused", "1 of 3".
  std::string text() {
    std::set<std::string> ops, kinds;
    for (const auto& [cell, of] : counts) ops.insert(cell.first), kinds.insert(cell.second);
    std::string text = fmt::format("| op | {} |\n|---|", fmt::join(kinds, " | "));
    for (std::size_t i = 0; i < kinds.size(); ++i) text += "---|";
    for (const std::string& op : ops) {
      text += fmt::format("\n| {} |", op);
      for (const std::string& kind : kinds) {
        auto& of = counts[{op, kind}];
        const std::size_t seen = of[Verdict::seen], excused = of[Verdict::excused];
        text +=
            seen == 0 && excused == 0 && of[Verdict::unseen] == 0 ? " " : fmt::format(" {}", seen);
        if (excused > 0) text += fmt::format("+{} excused", excused);
        if (of[Verdict::unseen] > 0)
          text += fmt::format(" of {}", seen + excused + of[Verdict::unseen]);
        text += " |";
      }
    }
    return text + "\n";
  }
};

// The named mutants, or a sample of them. The same text gives the same sample.
std::vector<Subject> chosen_of(const std::vector<Subject>& all, const Arguments& arguments) {
  std::vector<Subject> chosen;
  for (const Subject& subject : all) {
    const auto is_part = [&](const std::string& word) {
      return subject.name.find(word) != std::string::npos;
    };
    if (arguments.parts.empty() || std::ranges::any_of(arguments.parts, is_part)) {
      chosen.push_back(subject);
    }
  }
  if (arguments.sample == 0 || arguments.sample >= chosen.size()) return chosen;
  const auto place = [&](const Subject& subject) {
    return std::hash<std::string>()(subject.name + arguments.seed);
  };
  std::ranges::sort(chosen, {}, place);
  chosen.resize(arguments.sample);
  return chosen;
}

// Excuses that are not needed: rows see every mutant that they name. `subjects`: all that exist.
std::vector<std::string> useless_excuses(const std::vector<Subject>& subjects,
                                         const std::set<std::string>& seen) {
  std::vector<std::string> useless;
  for (const Excuse& excuse : excuses()) {
    bool named = false, needed = false;
    for (const Subject& subject : subjects) {
      named |= excuse.names(subject);
      needed |= excuse.names(subject) && !seen.contains(subject.name);
    }
    if (named && !needed) useless.push_back(excuse.name);
  }
  return useless;
}

int run(const Arguments& arguments) {
  if (!arguments.one.empty()) return run_one(arguments);
  const std::vector<Subject> chosen =
      chosen_of(arguments.lazy ? every_lazy_kernel(arguments.rare) : every_mutant(), arguments);
  VerdictTable table;
  std::set<std::string> known_to_be_seen;
  process::OrderedMap<SubjectLine> map(
      chosen.size(), [&] { return [&](std::size_t i) { return line_of(chosen[i], arguments); }; });
  map.run(static_cast<int>(std::thread::hardware_concurrency()),
          [&](std::size_t i, SubjectLine&& line) {
            ++table.counts[{chosen[i].op, chosen[i].kind}][line.verdict];
            if (line.verdict == Verdict::seen) known_to_be_seen.insert(chosen[i].name);
            fmt::print("{}\n", line.text);
            std::fflush(stdout);
          });
  if (arguments.lazy && !arguments.rare) fmt::print("{}", table.text());
  const auto [seen, excused] = table.sums();
  fmt::print("{} of {} are seen, {} excused\n", seen, chosen.size(), excused);
  if (arguments.rare) return 0;
  std::vector<std::string> useless;
  if (arguments.parts.empty() && arguments.sample == 0) {
    useless = useless_excuses(chosen, known_to_be_seen);
  }
  for (const std::string& name : useless) fmt::print("excused, though seen: {}\n", name);
  return seen + excused == chosen.size() && useless.empty() ? 0 : 1;
}

}  // namespace

}  // namespace plumb::cases

int main(int count, char** words) try {
  plumb::process::remember_command_line(count, words);
  return plumb::cases::run(plumb::cases::read(count, words));
} catch (const std::exception& error) {
  fmt::print(stderr, "plumb_kill_table: {}\n", error.what());
  return 2;
}
