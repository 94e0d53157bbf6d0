// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/findings.h"

#include <algorithm>
#include <array>
#include <utility>

namespace plumb::cases {

std::string_view name_of(Detector detector) {
  constexpr std::array<std::string_view, kDetectors> kNames{
      "error",      "history",    "inputs",   "ran",       "order", "address",
      "candidates", "convention", "metadata", "reference", "state", "eager",
      "twin",       "padding",    "path",     "cost",      "fresh", "alone"};
  return kNames[static_cast<std::size_t>(detector)];
}

void Findings::add(Detector detector, std::int64_t position, std::string op, std::string call,
                   std::string text) {
  const auto later = std::find_if(all_.begin(), all_.end(), [&](const Finding& finding) {
    return finding.position > position;
  });
  all_.insert(later, {detector, step_, position, std::move(op), std::move(call), std::move(text)});
}

}  // namespace plumb::cases
