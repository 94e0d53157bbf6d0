// SPDX-License-Identifier: Apache-2.0
// Numbers in the JSON report. JSON has no infinity: an unbounded ratio (an error where the bound is
// 0, a NaN) is the text "inf", "-inf" or "nan".
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace plumb::tools {

inline nlohmann::ordered_json report_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// Throws std::invalid_argument for another text, nlohmann's type_error for what is no number.
inline double number_of_report(const nlohmann::ordered_json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::invalid_argument(fmt::format("\"{}\" is not a number", text));
}

}  // namespace plumb::tools
