// SPDX-License-Identifier: Apache-2.0
#include "python/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "cases/studies/right_under.h"
#include "cases/tables/case_file.h"
#include "cases/tables/contract.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::python {

namespace {

using cases::BadRow;

// Waves of 32, e4m3fn: what an NVIDIA GPU of these models has. Words of the call say otherwise.
constexpr const char* kPlatform = "sim-sm90";

void set(const std::string& name, double value, plumb_numerics& numerics) {
  const auto integer = static_cast<std::int32_t>(value);
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
      {"sum_step", [&] { numerics.sum_step = integer; }}};
  const auto found = members.find(name);
  if (found == members.end()) {
    std::vector<std::string> names;
    for (const auto& [known, setter] : members) names.push_back(known);
    throw BadRow(
        fmt::format("there is no {} among the numerics: {}", name, fmt::join(names, ", ")));
  }
  found->second();
}

plumb_numerics numerics_of(std::string_view op, const NumericSettings& settings, bool partials) {
  const device::OpEntry* const own =
      device::find_entry(device::builtin_implementation(kPlatform), op);
  plumb_numerics numerics = own == nullptr ? numerics_with({}) : own->numerics;
  numerics.stores_partials = partials ? 1 : 0;
  // Nobody has promised an order.
  numerics.index_order = PLUMB_INDICES_ANY_ORDER;
  numerics.equal_keys = PLUMB_EQUAL_KEYS_ANY;
  for (const auto& [name, value] : settings) set(name, value, numerics);
  return numerics;
}

bool has_scratch(const cases::TensorSet& tensors, const cases::GivenCall& call) {
  return std::any_of(tensors.all().begin(), tensors.all().end(), [&](const auto& tensor) {
    return tensor.spec().role == cases::Role::scratch && call.tensors.contains(tensor.spec().name);
  });
}

}  // namespace

plumb_numerics numerics_with(const NumericSettings& settings) {
  // fp32 sums in one chain, the fast functions of a GPU, bf16 probabilities; no bit repeats.
  plumb_numerics numerics{.product = PLUMB_F32,
                          .accumulator = PLUMB_F32,
                          .chains = 1,
                          .probability = PLUMB_BF16,
                          .function_ulp = 4};
  for (const auto& [name, value] : settings) set(name, value, numerics);
  if (numerics.chains < 1) throw BadRow("numerics: chains is at least 1");
  if (numerics.sum_step < 0) throw BadRow("numerics: sum_step is at least 0");
  if (!(numerics.function_ulp >= 0)) throw BadRow("numerics: function_ulp is at least 0");
  return numerics;
}

const cases::OpDefinition& known_op(const std::string& name) {
  std::vector<std::string> names;
  for (const cases::OpDefinition& op : cases::all_ops()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  const std::string nearest = cases::nearest_name(name, names);
  throw BadRow(fmt::format("there is no op {}{}", name,
                           nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

JudgedArrays::JudgedArrays(const std::string& name, const cases::GivenCall& call,
                           const NumericSettings& numerics, bool needs_outputs)
    : op_(known_op(name)) {
  const device::Properties platform = device::open_device(kPlatform)->properties();
  row_ = cases::row_of(op_, call, platform, needs_outputs);
  problem_ = op_.make_problem(row_, platform);
  tensors_ = cases::tensors_of(op_, *problem_, call);
  numerics_ = numerics_of(op_.name, numerics, has_scratch(tensors_, call));
}

cases::Expectations JudgedArrays::expect(const cases::TensorSet& tensors) const {
  return expect(*problem_, tensors);
}

// Padding or not follows from the inputs: what holds NaN promises nothing.
cases::Expectations JudgedArrays::expect(const cases::Problem& problem,
                                         const cases::TensorSet& tensors) const {
  const cases::Step step{0, problem.capacity(), cases::Fill::real, cases::DeadRows::foreign};
  return problem.expect(step, tensors, cases::to_reference(numerics_), numerics_);
}

std::vector<cases::Alternative> JudgedArrays::right_under(const cases::GivenCall& call) const {
  const auto given = [&](cases::Expectations all) {
    std::erase_if(all, [&](const auto& one) { return !cases::has_stored(call, one); });
    return all;
  };
  const cases::Expectations present = given(expect(tensors_));
  return cases::right_contracts(op_, row_, [&](const cases::Alternative& alternative) {
    try {
      const device::Properties platform = device::open_device(kPlatform)->properties();
      const auto problem =
          op_.make_problem(cases::under_contract(op_, alternative.contract, row_), platform);
      const cases::Expectations other =
          given(expect(*problem, cases::tensors_of(op_, *problem, call)));
      // What the call held before is not known.
      const auto untouched = [](const auto&...) { return false; };
      return std::ranges::all_of(cases::compare(other), &cases::TensorReport::passed) &&
             cases::leaves_rest_alone(present, other, untouched);
    } catch (const std::exception&) {  // not a call that the alternative can have
      return false;
    }
  });
}

}  // namespace plumb::python
