// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/right_under.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <sstream>

#include "cases/tables/contract.h"

namespace plumb::cases {

namespace {

// Limits for references and comparisons, and for repeated cases (by Problem::cost).
constexpr double kMostNanoseconds = 3e9, kMostNanosecondsOfRuns = 2e10;
constexpr double kMostNanosecondsOfPassing = 2e9;
constexpr double kMostRuns = 8;  // alternatives for which the case is run again

// `contract` with its values replaced by those of `changed`.
std::string with_values(const std::string& contract, const std::string& changed) {
  std::string words = changed;
  std::istringstream own(contract);
  for (std::string word; own >> word;) {
    const std::string choice = word.substr(0, word.find('=') + 1);
    if (!changed.starts_with(choice) && changed.find(" " + choice) == std::string::npos) {
      words += (words.empty() ? "" : " ") + word;
    }
  }
  return words;
}

RunOptions with_numerics(RunOptions options, const std::string& words) {
  options.redeclare = [before = options.redeclare, words](plumb_numerics& numerics) {
    before(numerics);
    numerics = redeclared(numerics, words);
  };
  return options;
}

// Options in which the implementation declares the alternative.
RunOptions declaring(const OpDefinition& op, RunOptions options, const Alternative& alternative) {
  auto changed = std::make_shared<std::array<device::Implementation, 2>>();
  for (const bool checked : {false, true}) {
    device::Implementation& one = (*changed)[checked];
    one = options.implementation(options.platform, checked);
    for (device::OpEntry& entry : one.entries) {
      if (entry.op == op.name) entry.contract = with_values(entry.contract, alternative.contract);
    }
  }
  options.implementation = [changed](std::string_view,
                                     bool checked) -> const device::Implementation& {
    return (*changed)[checked];
  };
  return with_numerics(std::move(options), alternative.numerics);
}

RunOptions judged_under(RunOptions options, const Alternative& alternative) {
  options.judged_under = with_values(options.judged_under, alternative.contract);
  return with_numerics(std::move(options), alternative.numerics);
}

bool is_promised_by(const Expectations& all, const Expectation& like, std::int64_t row,
                    std::int64_t column) {
  return std::ranges::any_of(all, [&](const Expectation& one) {
    if (one.stored->spec().name != like.stored->spec().name || one.basis != like.basis)
      return false;
    const ColumnRange range = columns_of(one.columns, *one.stored, row);
    return is_promised(one.promised, row) && range.begin <= column && column < range.end;
  });
}

bool passes(const Case& which, const RunOptions& options) {
  try {
    return run_case(which, options).outcome == Outcome::passed;
  } catch (const BadRow&) {
    return false;
  }
}

class FailedVerdict {
 public:
  FailedVerdict(const Case& which, const CaseResult& result, const RunOptions& options)
      : which_(which), evidence_(*result.evidence), options_(options) {
    const std::unique_ptr<Problem> problem = make_problem(which, options, false);
    present_ = expect(*problem, evidence_.declared);
    const double verdict = verdict_cost(*problem);
    const double two_runs = 2 * static_cast<double>(result.launches) * (problem->cost() + verdict);
    checks_left_ = static_cast<int>(std::min(1e3, kMostNanoseconds / verdict));
    runs_left_ = static_cast<int>(std::min(kMostRuns, kMostNanosecondsOfRuns / two_runs));
  }

  bool is_right(const Alternative& alternative) {
    if (--checks_left_ < 0 || !bytes_are_right(alternative) || --runs_left_ < 0) return false;
    const bool as_launched =
        alternative.contract.empty() || passes(which_, judged_under(options_, alternative));
    return as_launched && passes(which_, declaring(*which_.op, options_, alternative));
  }

 private:
  Expectations expect(const Problem& problem, const plumb_numerics& declared) const {
    return problem.expect(evidence_.step, evidence_.tensors, to_reference(declared), declared);
  }

  bool bytes_are_right(const Alternative& alternative) const {
    try {
      const auto problem = make_problem(which_, judged_under(options_, alternative), false);
      const Expectations other =
          expect(*problem, redeclared(evidence_.declared, alternative.numerics));
      return std::ranges::all_of(compare(other), &TensorReport::passed) &&
             leaves_rest_alone(present_, other,
                               [this](const auto&... element) { return is_untouched(element...); });
    } catch (const std::exception&) {  // the alternative cannot have this row or tensor
      return false;
    }
  }

  // True if the element still holds what it held before the launch. Always true for scratch and
  // state: what a declaration does not promise there is the kernel's own.
  bool is_untouched(const HostTensor& stored, std::int64_t row, std::int64_t column) const {
    const std::shared_ptr<const Origin>& origin = stored.spec().origin;
    const std::string& name = origin ? origin->tensor : stored.spec().name;
    if (evidence_.tensors.at(name).spec().role != Role::output) return true;
    const std::size_t size = size_of(stored.spec().dtype);
    const std::size_t at = static_cast<std::size_t>(stored.row_offset(row) + column) * size;
    const std::byte* const got = stored.bytes().data() + at;
    if (const std::string& start = stored.spec().starts_as; !start.empty()) {
      return std::memcmp(got, evidence_.tensors.at(start).bytes().data() + at, size) == 0;
    }
    return std::all_of(got, got + size, [&](std::byte byte) {
      return byte == static_cast<std::byte>(evidence_.poison);
    });
  }

  const Case& which_;
  const CaseEvidence& evidence_;
  const RunOptions& options_;
  Expectations present_;
  int checks_left_ = 0, runs_left_ = 0;
};

}  // namespace

bool fails_by_values(const CaseResult& result) {
  return result.outcome == Outcome::failed &&
         std::ranges::none_of(result.failures,
                              [](const Failure& failure) { return failure.reports.empty(); });
}

bool leaves_rest_alone(const Expectations& present, const Expectations& other,
                       const IsUntouched& is_untouched) {
  for (const Expectation& one : present) {
    for (std::int64_t row = 0; row < one.stored->rows(); ++row) {
      if (!is_promised(one.promised, row)) continue;
      const ColumnRange range = columns_of(one.columns, *one.stored, row);
      for (std::int64_t column = range.begin; column < range.end; ++column) {
        if (is_promised_by(other, one, row, column)) continue;
        if (!is_untouched(*one.stored, row, column)) return false;
      }
    }
  }
  return true;
}

std::vector<Alternative> right_under(const Case& any, const CaseResult& result,
                                     const RunOptions& options) {
  if (!fails_by_values(result) || !result.evidence) return {};
  const Case which = under_contract(options.implementation(options.platform, false), any);
  FailedVerdict verdict(any, result, options);
  return right_alternatives(
      *which.op, which.row, result.evidence->declared,
      [&](const Alternative& alternative) { return verdict.is_right(alternative); });
}

std::vector<Alternative> passes_under(const Case& any, const CaseResult& result,
                                      const RunOptions& options) {
  if (result.outcome != Outcome::failed || any.op->choices.empty()) return {};
  if (!options.platform.starts_with("sim-") && !fails_by_values(result)) return {};
  const Case which = under_contract(options.implementation(options.platform, false), any);
  const std::unique_ptr<Problem> problem = make_problem(any, options, false);
  const double run =
      static_cast<double>(result.launches) * (problem->cost() + verdict_cost(*problem));
  auto left = static_cast<int>(std::min(kMostRuns, kMostNanosecondsOfPassing / run));
  // A case that failed for its golden alone passes under every declaration, the present one too.
  if (left > 0 && passes(any, options)) return {};
  std::vector<Alternative> passing;
  for (const Alternative& one : single_changes(*which.op, which.row)) {
    if (--left <= 0) break;
    if (passes(any, declaring(*any.op, options, one))) passing.push_back(one);
  }
  return passing;
}

void find_declarations(const Case& which, const RunOptions& options, CaseResult& result) {
  result.right_under = right_under(which, result, options);
  if (result.right_under.empty()) result.passes_under = passes_under(which, result, options);
}

}  // namespace plumb::cases
