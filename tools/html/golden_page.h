// SPDX-License-Identifier: Apache-2.0
//
// Data of a page about goldens: moved tensors with values before and after.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/html/read_report.h"

namespace plumb::tools {

// Limit in bytes of JSON for the values before and after of a page.
inline constexpr std::size_t kDriftBytes = 1'200'000;

// The moved tensors of a case (member "drift"). Subtracts the size of the values from `room`, and
// leaves values out that exceed it.
nlohmann::ordered_json moved_tensors(const nlohmann::json& object, std::size_t& room);

nlohmann::ordered_json goldens_data(const ReadReport& report);
std::string goldens_as_text(const nlohmann::ordered_json& data);

}  // namespace plumb::tools
