// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/line_kind.h"

#include <algorithm>
#include <regex>

namespace plumb::cases {

std::string without_numbers(std::string_view line) {
  static const std::regex remark(R"(\([^()]*\)|\[[^\[\]]*\])");
  // Numbers such as 12, 0-3, 5, 0x7f, 1.2e-07; but not digits in names such as k1 or fp8.
  static const std::regex number(
      R"((^|[^A-Za-z0-9_])[-+]?(0x[0-9a-f]+|[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)([,-] ?[0-9]+)*)");
  std::string kind(line.substr(0, line.find(';')));
  kind = std::regex_replace(kind, remark, "");
  kind = std::regex_replace(kind, number, "$1#");
  // Make plural and singular equal: rows and row, elements and element.
  static const std::regex several(R"(\b(row|element|code)s\b)"), their(R"(\btheir\b)");
  kind = std::regex_replace(std::regex_replace(kind, several, "$1"), their, "its");
  kind.erase(
      std::unique(kind.begin(), kind.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      kind.end());
  while (!kind.empty() && (kind.back() == ' ' || kind.back() == ',')) kind.pop_back();
  return kind;
}

}  // namespace plumb::cases
