// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/outside_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "cases/studies/right_under.h"
#include "cases/tables/case_file.h"
#include "cases/tables/contract.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::cases {

namespace {

// Numbers in traces are arbitrary: refuse values outside of an enumeration or a member's range.
void check_numeric(const std::string& name, double value) {
  if (name == "function_ulp") {
    if (value >= 0 && std::isfinite(value)) return;
    throw BadRow(fmt::format("numerics: function_ulp is {}; it is a number from 0", value));
  }
  const auto words = numeric_words().find(name);
  const double least = name == "chains" ? 1 : 0;
  const double most = words == numeric_words().end()
                          ? std::numeric_limits<std::int32_t>::max()
                          : static_cast<double>(words->second.size()) - 1;
  if (value >= least && value <= most && value == std::floor(value)) return;
  throw BadRow(fmt::format("numerics: {} is {}; it is a whole number from {} to {}", name, value,
                           least, most));
}

void set(const std::string& name, double value, plumb_numerics& numerics) {
  std::int32_t integer = 0;
  const std::map<std::string, std::function<void()>> members{
      {"product", [&] { numerics.product = static_cast<plumb_format>(integer); }},
      {"accumulator", [&] { numerics.accumulator = static_cast<plumb_format>(integer); }},
      {"chains", [&] { numerics.chains = integer; }},
      {"probability", [&] { numerics.probability = static_cast<plumb_format>(integer); }},
      {"deterministic", [&] { numerics.deterministic = integer; }},
      {"stores_partials", [&] { numerics.stores_partials = integer; }},
      {"function_ulp", [&] { numerics.function_ulp = static_cast<float>(value); }},
      {"index_order", [&] { numerics.index_order = static_cast<plumb_index_order>(integer); }},
      {"equal_keys", [&] { numerics.equal_keys = static_cast<plumb_equal_keys>(integer); }},
      {"sum_unit", [&] { numerics.sum_unit = static_cast<plumb_sum_unit>(integer); }},
      {"sum_step", [&] { numerics.sum_step = integer; }},
      {"score", [&] { numerics.score = static_cast<plumb_format>(integer); }}};
  const auto found = members.find(name);
  if (found == members.end()) {
    std::vector<std::string> names;
    for (const auto& [known, setter] : members) names.push_back(known);
    throw BadRow(
        fmt::format("there is no {} among the numerics: {}", name, fmt::join(names, ", ")));
  }
  check_numeric(name, value);
  if (name != "function_ulp") integer = static_cast<std::int32_t>(value);
  found->second();
}

plumb_numerics numerics_of(std::string_view op, const NumericSettings& settings, bool partials) {
  const device::OpEntry* const own =
      device::find_entry(device::builtin_implementation(kCallPlatform), op);
  plumb_numerics numerics = own == nullptr ? numerics_with({}) : own->numerics;
  numerics.stores_partials = partials ? 1 : 0;
  // The caller has not promised an order, unless `settings` say so.
  numerics.index_order = PLUMB_INDICES_ANY_ORDER;
  numerics.equal_keys = PLUMB_EQUAL_KEYS_ANY;
  for (const auto& [name, value] : settings) set(name, value, numerics);
  return numerics;
}

bool has_scratch(const TensorSet& tensors, const GivenCall& call) {
  return std::any_of(tensors.all().begin(), tensors.all().end(), [&](const auto& tensor) {
    return tensor.spec().role == Role::scratch && call.tensors.contains(tensor.spec().name);
  });
}

// Under coarse numerics an element may have no bound. Any value would pass, so this adds a failure
// and returns true.
bool refuse_without_bound(const Expectation& one, TensorReport& report) {
  const reference::Estimate* const estimate = one.truth->estimate();
  if (estimate == nullptr) return false;
  std::int64_t unlimited = 0;
  for (std::int64_t i = 0; i < estimate->rows * estimate->columns; ++i) {
    const bool judged =
        is_promised(one.promised, i / estimate->columns) && std::isfinite(estimate->centre(i));
    unlimited += judged && !std::isfinite(estimate->bound(i));
  }
  if (unlimited == 0) return false;
  report.failures.push_back(
      fmt::format("{}: {} elements have no bound under these numerics: any value would pass",
                  report.tensor, unlimited));
  return true;
}

}  // namespace

plumb_numerics numerics_with(const NumericSettings& settings) {
  // Defaults: fp32 sums in one chain, fast GPU functions, bf16 probabilities; not deterministic.
  plumb_numerics numerics{.product = PLUMB_F32,
                          .accumulator = PLUMB_F32,
                          .chains = 1,
                          .probability = PLUMB_BF16,
                          .function_ulp = 4};
  for (const auto& [name, value] : settings) set(name, value, numerics);
  return numerics;
}

const OpDefinition& known_op(const std::string& name) {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw BadRow(fmt::format("there is no op {}{}", name,
                           nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

const std::map<std::string, std::vector<std::string>>& numeric_words() {
  static const std::vector<std::string> formats{"f64", "f32", "tf32", "tf32_truncated", "bf16"};
  static const std::map<std::string, std::vector<std::string>> words{
      {"product", formats},
      {"accumulator", formats},
      {"probability", formats},
      {"score", formats},
      {"index_order", {"any", "own", "ascending", "by_key"}},
      {"equal_keys", {"any", "repeated", "lowest_index"}},
      {"sum_unit", {"fp32", "sm90_bf16", "sm90_fp8", "24_bits"}}};
  return words;
}

double numeric_word(const std::string& member, const std::string& word) {
  const auto words = numeric_words().find(member);
  if (words == numeric_words().end()) {
    throw BadRow(fmt::format("numerics: {} is \"{}\"; it is a number", member, word));
  }
  const auto found = std::ranges::find(words->second, word);
  if (found != words->second.end()) return static_cast<double>(found - words->second.begin());
  throw BadRow(fmt::format("numerics: {} is \"{}\"; words are {}", member, word,
                           fmt::join(words->second, ", ")));
}

bool CallVerdict::passed() const {
  return !outputs.empty() && std::ranges::all_of(outputs, [](const JudgedOutput& output) {
    return output.report.passed();
  });
}

OutsideCall::OutsideCall(const std::string& name, const GivenCall& call,
                         const NumericSettings& numerics, bool needs_outputs,
                         const RowSampling& sampling)
    : op_(known_op(name)), call_(call) {
  const device::Properties platform = device::open_device(kCallPlatform)->properties();
  row_ = row_of(op_, call, platform, needs_outputs);
  problem_ = op_.make_problem(row_, platform);
  const TensorSet shapes = problem_->make_tensors();
  numerics_ = numerics_of(op_.name, numerics, has_scratch(shapes, call));
  const RecordedCall recorded{row_, platform, *problem_, numerics_, shapes};
  if (const std::int64_t most = rows_to_judge(recorded, sampling); most > 0) {
    rows_ = independent_rows(recorded);
    choice_ = {most, sampling.seed, rows_, rows_};
    needed_ = needed_places(recorded, *choice_);
  }
  tensors_ = tensors_of(op_, *problem_, call, needed_);
}

Expectations OutsideCall::expect(const TensorSet& tensors) const {
  return expect(*problem_, tensors);
}

Expectations OutsideCall::expect(const Problem& problem, const TensorSet& tensors) const {
  return problem.expect(recorded_step(problem), tensors, to_reference(numerics_), numerics_);
}

Expectations OutsideCall::given(Expectations all) const {
  std::erase_if(all, [&](const Expectation& one) { return !has_stored(call_, one); });
  return all;
}

Expectations OutsideCall::judged(const RecordedCall& call) const {
  std::optional<Expectations> some;
  if (choice_) some = expect_sample(call, *choice_);
  return given(some ? std::move(*some) : expect(call.problem, call.tensors));
}

CallVerdict OutsideCall::judge() const {
  CallVerdict verdict;
  const device::Properties platform = device::open_device(kCallPlatform)->properties();
  if (choice_) {
    verdict.rows = rows_;
    // May exceed the limit: both ends are always judged.
    verdict.rows_judged = std::ssize(choose_rows(*choice_, rows_));
  }
  Expectations expectations = judged({row_, platform, *problem_, numerics_, tensors_});
  bool unlimited = false;
  for (Expectation& one : expectations) {
    TensorReport report = compare(one);
    unlimited = refuse_without_bound(one, report) || unlimited;
    verdict.outputs.push_back({std::move(one), std::move(report)});
  }
  // If any value would pass, another contract explains nothing.
  if (!verdict.passed() && !unlimited) verdict.right_if = right_if(right_under());
  return verdict;
}

std::vector<Alternative> OutsideCall::right_under() const {
  const device::Properties platform = device::open_device(kCallPlatform)->properties();
  const Expectations present = judged({row_, platform, *problem_, numerics_, tensors_});
  return right_contracts(op_, row_, [&](const Alternative& alternative) {
    try {
      const Row row = under_contract(op_, alternative.contract, row_);
      const auto problem = op_.make_problem(row, platform);
      const TensorSet tensors = tensors_of(op_, *problem, call_, needed_);
      const Expectations other = judged({row, platform, *problem, numerics_, tensors});
      // Contents of outputs before the call are unknown.
      const auto untouched = [](const auto&...) { return false; };
      return std::ranges::all_of(compare(other), &TensorReport::passed) &&
             leaves_rest_alone(present, other, untouched);
    } catch (const std::exception&) {  // the alternative cannot have such a call
      return false;
    }
  });
}

}  // namespace plumb::cases
