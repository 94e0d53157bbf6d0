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
// The parameter with what a row's steps have to do (decode/watch/step_features.h).
inline constexpr std::string_view kNamedFor = "named_for";

// A graph mode as names of cases have it.
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
// As all_cases for ops: rows of `overrides` take the place of the compiled-in ones.
std::vector<StepCase> decode_step_cases(const std::vector<CaseFile>& overrides = {});

// The engine that a case asks for, and the schedule that it is driven through.
struct ServedCase {
  DecodeSetup setup;
  ScheduleShape shape;
};
// `base` has what the row does not set. The seed is added to the row's. Throws BadRow, and
// std::invalid_argument for a graph mode that the model cannot have.
ServedCase served_case(const StepCase& which, DecodeSetup base, std::uint64_t seed);

}  // namespace plumb::cases
