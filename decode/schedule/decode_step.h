// SPDX-License-Identifier: Apache-2.0
//
// A decode step as a case: decode_step/<row>/<graph mode>. A row (decode/schedule/decode_step.toml)
// says which model is served, to how many requests, and what happens to them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/registry.h"
#include "decode/graphs/graph_mode.h"
#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

inline constexpr std::string_view kDecodeStep = "decode_step";

const RowSchema& decode_step_schema();
// Name of the parameter that lists what a row's steps must do (decode/watch/step_features.h).
inline constexpr std::string_view kNamedFor = "named_for";
inline constexpr std::string_view kModesOfRow = "modes";

// A graph mode, with its name in names of cases.
struct GraphModeName {
  device::decode::GraphMode mode;
  std::string_view name, why;
};
// In the order of the enumerators.
const std::array<GraphModeName, 6>& graph_mode_names();
const GraphModeName& graph_mode_name(device::decode::GraphMode mode);

struct StepCase {
  Row row;
  device::decode::GraphMode mode = device::decode::GraphMode::none;
  std::string id() const;  // "decode_step/row/graph mode"
};
// Like all_cases for ops: rows of `overrides` replace the compiled-in ones.
std::vector<StepCase> decode_step_cases(const std::vector<CaseFile>& overrides = {});

// The engine setup of a case, and the schedule that drives it.
struct ServedCase {
  DecodeSetup setup;
  ScheduleShape shape;
};
// `base`: values for everything that the row does not set. `seed` is added to the row's. Throws
// BadRow, and std::invalid_argument for a graph mode that the model does not support.
ServedCase served_case(const StepCase& which, DecodeSetup base, std::uint64_t seed);

}  // namespace plumb::cases
