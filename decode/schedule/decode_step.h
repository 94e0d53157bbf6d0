// SPDX-License-Identifier: Apache-2.0
//
// A decode step as a case: decode_step/<row>/<graph mode>. A row (decode/schedule/decode_step.toml)
// says which model is served, to how many requests, and what happens to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/registry.h"
#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

inline constexpr std::string_view kDecodeStep = "decode_step";

// What its rows may set. It makes no Problem.
const OpDefinition& decode_step_definition();
// One per graph mode, in the order of device::decode::GraphMode.
const std::vector<Scenario>& graph_mode_scenarios();
// As all_cases, whose ops these are not.
std::vector<Case> decode_step_cases(const std::vector<CaseFile>& overrides = {});
bool is_decode_step(const Case& which);

// The engine that a case asks for, and the schedule that it is driven through.
struct ServedCase {
  DecodeSetup setup;
  ScheduleShape shape;
};
// `base` has what the row does not set. The seed is added to the row's. Throws BadRow, and
// std::invalid_argument for a graph mode that the model cannot have.
ServedCase served_case(const Case& which, DecodeSetup base, std::uint64_t seed);

}  // namespace plumb::cases
