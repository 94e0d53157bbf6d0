// SPDX-License-Identifier: Apache-2.0
//
// A kernel in another language receives a case's tensors with the case's shapes, strides and
// dtypes.
#include "cases/tables/launch_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace launch_arguments_test {

// Where the fake entry below records the launch of this thread. An entry's function has no argument
// for it.
struct Launched {
  const OpDefinition* op;
  std::vector<std::byte> frozen;
};
thread_local Launched launched;

plumb_status keep(const void* params) {
  launched.frozen = freeze_launch(*launched.op->table, params);
  return PLUMB_OK;
}

std::int64_t rows_there(const TensorSpec& spec) {
  return spec.placement.empty() ? spec.shape.front() : spec.placement.back() + 1;
}

std::vector<std::int64_t> strides_of(const TensorSpec& spec) {
  if (!spec.strides.empty()) return spec.strides;
  std::vector<std::int64_t> strides(spec.shape.size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * spec.shape[i];
  return strides;
}

std::size_t bytes_of(const TensorSpec& spec) {
  std::int64_t last = 0;
  const std::vector<std::int64_t> strides = strides_of(spec);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t size = i == 0 ? rows_there(spec) : spec.shape[i];
    if (size == 0) return 0;
    last += (size - 1) * strides[i];
  }
  return static_cast<std::size_t>(last + 1) * size_of(spec.dtype);
}

// Gives each tensor an address range without memory, because nothing accesses it.
struct PlacedCase {
  TensorSet tensors;
  DeviceTensors addresses;
  std::map<std::uintptr_t, std::size_t> sizes;

  explicit PlacedCase(const Problem& problem) : tensors(problem.make_tensors()) {
    std::uintptr_t at = std::uintptr_t{1} << 40;
    for (const HostTensor& tensor : tensors.all()) {
      sizes[at] = bytes_of(tensor.spec());
      addresses.set(tensor.spec().name, reinterpret_cast<void*>(at));
      at += std::uintptr_t{1} << 40;
    }
  }
};

std::string text_of(const std::vector<std::int64_t>& shape,
                    const std::vector<std::int64_t>& strides) {
  return fmt::format("[{}] strides [{}]", fmt::join(shape, ", "), fmt::join(strides, ", "));
}

// Strides with 0 in dimensions of one element, where the stride has no effect.
std::vector<std::int64_t> used(std::vector<std::int64_t> strides,
                               const std::vector<std::int64_t>& shape) {
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (shape[i] <= 1) strides[i] = 0;
  }
  return strides;
}

bool same_codes(const LaunchTensor& given, const TensorSpec& spec) {
  return !spec.format.starts_with("e4m3") || given.format == spec.format;
}

struct LaunchedCase {
  std::unique_ptr<Problem> problem;
  PlacedCase placed;
  std::vector<LaunchArgument> arguments;  // empty: the case cannot be launched

  LaunchedCase(const Case& which, const device::Properties& platform)
      : problem(which.op->make_problem(which.row, platform)), placed(*problem) {
    launched = {which.op, {}};
    const std::unique_ptr<OpState> state = problem->make_state(placed.addresses);
    const device::OpEntry entry{which.op->name, &keep, {}};
    int stream = 0;
    if (problem->launch(entry, placed.addresses, state.get(), &stream) != PLUMB_OK) return;
    std::vector<std::max_align_t> bytes(launched.frozen.size() / sizeof(std::max_align_t) + 1);
    std::ranges::copy(launched.frozen, reinterpret_cast<std::byte*>(bytes.data()));
    const void* params = thaw_launch(*which.op->table, reinterpret_cast<std::byte*>(bytes.data()));
    arguments = launch_arguments(*which.op, params, [&](const void* at) {
      return placed.sizes.at(reinterpret_cast<std::uintptr_t>(at));
    });
  }

  auto find(std::string_view name) const {
    return std::ranges::find(arguments, name, &LaunchArgument::name);
  }
};

std::string difference(const Case& which, const device::Properties& platform) {
  const LaunchedCase launch(which, platform);
  if (launch.arguments.empty()) return "refused";
  std::string text;
  for (const HostTensor& tensor : launch.placed.tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    const auto found = launch.find(spec.name);
    if (found == launch.arguments.end()) continue;  // <name>_before is no argument
    const auto* given = std::get_if<LaunchTensor>(&found->value);
    std::vector<std::int64_t> shape = spec.shape;
    if (!shape.empty()) shape.front() = rows_there(spec);
    // For tensors with rows beyond those of the call, the number of rows is not among the
    // arguments.
    const std::string described = which.op->table->describe(spec);
    const bool longer = described.find("more_") != std::string::npos ||
                        described.find("extra_tokens") != std::string::npos ||
                        described.find("[kv_rows, ") != std::string::npos;
    if (longer && given != nullptr && given->shape.front() <= shape.front()) {
      shape.front() = given->shape.front();
    }
    if (spec.sparse && given != nullptr && given->strides.front() > shape[1]) continue;  // far rows
    if (given == nullptr) {
      text += fmt::format("  {} is missing\n", spec.name);
    } else if (given->shape != shape ||
               used(given->strides, shape) != used(strides_of(spec), shape) ||
               size_of(given->dtype) != size_of(spec.dtype) || !same_codes(*given, spec)) {
      text +=
          fmt::format("  {}: {} {}, is {} {}\n", spec.name, text_of(given->shape, given->strides),
                      given->format, text_of(shape, strides_of(spec)), spec.format);
    }
  }
  return text.empty() ? "" : which.id() + "\n" + text;
}

TEST(LaunchArguments, AreTheTensorsOfEveryCase) {
  const device::Properties platform = device::open_device("sim-sm90")->properties();
  std::set<std::string> rows;
  for (const Case& which : all_cases()) {
    if (which.scenario->mode != Scenario::Mode::eager) continue;
    if (!rows.insert(which.row.op + "/" + which.row.name).second) continue;
    EXPECT_EQ(difference(which, platform), "") << which.id();
  }
  EXPECT_GT(rows.size(), 100U);
}

// The case's kv tensor has more rows than the call's workspace (kv_rows), to catch indices outside
// of the workspace. The argument must end with the workspace.
TEST(LaunchArguments, EndWithTheRowsOfTheCall) {
  const Case& which = find_case("sparse_mla_prefill/holes/eager");
  const LaunchedCase given(which, device::open_device("sim-sm90")->properties());
  const auto& kv = std::get<LaunchTensor>(given.find("kv")->value);
  EXPECT_EQ(kv.shape.front(), std::get<std::int64_t>(given.find("kv_rows")->value));
  EXPECT_LT(kv.shape.front(), given.placed.tensors.at("kv").rows());
}

TEST(LaunchArguments, EachHasOneName) {
  for (const OpDefinition& op : all_ops()) {
    std::set<std::string> names;
    for (const auto& [name, kind] : launch_argument_names(op)) {
      EXPECT_TRUE(names.insert(name).second) << op.name << ": " << name;
      EXPECT_TRUE(std::ranges::all_of(name, [](char c) { return std::isalnum(c) || c == '_'; }))
          << op.name << ": " << name;
    }
  }
}

}  // namespace launch_arguments_test
}  // namespace plumb::cases
