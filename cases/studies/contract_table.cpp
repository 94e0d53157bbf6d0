// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/contract_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <tuple>

#include "cases/studies/right_under.h"
#include "cases/tables/contract.h"
#include "cases/tensors/sort_by.h"

namespace plumb::cases {

namespace {

std::string word(const ContractPair& pair, const std::string& value) {
  return fmt::format("{}={}", pair.choice, value);
}

// Total nanoseconds of launches and verdicts that are spent on a pair marked as unseparated.
constexpr double kMostOfMarked = 3e8;

bool is_tried(const ContractPair& pair, const Case& which) {
  const Scenario::Mode mode = which.scenario->mode;
  const bool graph = mode == Scenario::Mode::full_graph && pair.why_unseparated.empty();
  // A random row separates values only by chance.
  if (which.row.eager_only) return false;
  return which.tier() <= Tier::standard && !which.row.real_only && which.row.known_bug.empty() &&
         (mode == Scenario::Mode::eager || graph);
}

struct CandidateCase {
  const Case* which = nullptr;
  bool graph = false, unlikely = false;  // unlikely: the row names neither value of the pair
  double cost = 0;
};

// Eager cases before graph cases, then rows that name one of the values, then the cheapest.
std::vector<CandidateCase> candidates_of(const ContractPair& pair, const std::vector<Case>& cases,
                                         const std::string& platform) {
  const device::Properties properties = device::open_device(platform)->properties();
  std::vector<CandidateCase> candidates;
  for (const Case& which : cases) {
    if (!is_tried(pair, which)) continue;
    const std::string_view named = which.row.word(pair.choice);
    const auto problem = which.op->make_problem(which.row, properties);
    candidates.push_back({.which = &which,
                          .graph = which.scenario->mode == Scenario::Mode::full_graph,
                          .unlikely = named != pair.of && named != pair.under,
                          .cost = problem->cost() + verdict_cost(*problem)});
  }
  sort_by(candidates,
          [](const CandidateCase& one) { return std::tuple(one.graph, one.unlikely, one.cost); });
  return candidates;
}

// Runs the case under the contract `pair.under`. An empty result if the row does not allow that.
CaseResult run_pair(const ContractPair& pair, const Case& any, const std::string& platform) {
  try {
    Case which = any;
    which.row = under_contract(*which.op, word(pair, pair.under), std::move(which.row));
    return run_case(which, with_kernel_of(pair, platform));
  } catch (const BadRow&) {
    return {};
  } catch (const std::invalid_argument&) {  // a struct that one of the contracts leaves out
    return {};
  }
}

void find_separating(ContractPair& pair, const std::vector<Case>& cases,
                     const std::string& platform) {
  double spent = 0;
  for (const CandidateCase& candidate : candidates_of(pair, cases, platform)) {
    spent += candidate.cost;
    if (!pair.why_unseparated.empty() && spent > kMostOfMarked) return;
    const Case& which = *candidate.which;
    CaseResult result = run_pair(pair, which, platform);
    const bool by_values = fails_by_values(result);
    if (result.outcome != Outcome::failed || (pair.is_separated() && !by_values)) continue;
    pair.separated_by = which;
    pair.separated_by.row.words[pair.choice] = pair.under;
    pair.failure = std::move(result);
    if (by_values) return;
  }
}

std::string row_of(const ContractPair& pair) {
  if (!pair.is_separated()) return "none: " + pair.why_unseparated;
  const Case& which = pair.separated_by;
  if (!fails_by_values(pair.failure)) {
    return fmt::format("`{}/{}`, by more than values", which.row.name, which.scenario->name);
  }
  return fmt::format("`{}/{}`", which.row.name, which.scenario->name);
}

}  // namespace

RunOptions with_kernel_of(const ContractPair& pair, const std::string& platform) {
  RunOptions options;
  options.platform = platform;
  options.launched_under = word(pair, pair.of);
  return options;
}

std::vector<ContractPair> contract_pairs(const OpDefinition& op, const std::vector<Case>& cases,
                                         const std::string& platform) {
  std::vector<ContractPair> pairs;
  for (const ContractChoice& choice : op.choices) {
    for (const std::string_view under : choice.values) {
      for (const std::string_view of : choice.values) {
        if (of == under) continue;
        ContractPair& pair = pairs.emplace_back(
            ContractPair{.choice = std::string(choice.name),
                         .of = std::string(of),
                         .under = std::string(under),
                         .why_unseparated = std::string(choice.why_unseparated(of, under))});
        find_separating(pair, cases, platform);
      }
    }
  }
  return pairs;
}

std::vector<std::string> objections(const OpDefinition& op,
                                    const std::vector<ContractPair>& pairs) {
  std::vector<std::string> lines;
  for (const ContractPair& pair : pairs) {
    const std::string who = fmt::format("{}: a kernel of {} under {}", op.name, word(pair, pair.of),
                                        word(pair, pair.under));
    if (!pair.is_separated() && pair.why_unseparated.empty()) {
      lines.push_back(who + " fails in no row of the default tier, and no mark says why");
    }
    if (pair.is_separated() && !pair.why_unseparated.empty()) {
      lines.push_back(fmt::format("{} fails in {}, but is marked as not separated: {}", who,
                                  pair.separated_by.id(), pair.why_unseparated));
    }
  }
  return lines;
}

std::string contract_section(const OpDefinition& op, const std::vector<ContractPair>& pairs) {
  if (pairs.empty()) return "";
  std::string text =
      fmt::format("\n## {}\n\n| contract | kernel | fails in |\n|---|---|---|\n", op.name);
  for (const ContractPair& pair : pairs) {
    text += fmt::format("| `{}` | `{}` | {} |\n", word(pair, pair.under), word(pair, pair.of),
                        row_of(pair));
  }
  return text;
}

std::string contract_page() {
  std::string page =
      "# Choices and the rows that tell them apart\n\n"
      "Made by `plumb list --contracts`. A *kernel* that makes one value of a choice runs under\n"
      "a *contract* that says another. The third column names the cheapest case in which it then\n"
      "fails, or says why there is none. The report of that case names the kernel's value.\n"
      "[plugins.md](../plugins.md) says how a kernel declares its values,\n"
      "[arguments.md](arguments.md) what they mean.\n";
  for (const OpDefinition& op : all_ops()) {
    page += contract_section(op, contract_pairs(op, cases_of(op), kContractPlatform));
  }
  return page;
}

}  // namespace plumb::cases
