// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/signature.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>

namespace plumb::bisect {

namespace {

using nlohmann::json;

std::string text(const json& object, const char* name) {
  return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
}

const json* first(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_array() || found->empty() ? nullptr : &found->front();
}

// Elements beyond their bound, a row's norm or direction, a bias: one error shows as one or the
// other as its size goes.
bool is_about_values(const std::string& kind) {
  constexpr std::array<std::string_view, 3> kWords = {" wrong", "beyond its bound", "mean error"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return kind.find(word) != std::string::npos; });
}

// Its process is no part of what is wrong, but the signal that ended it is.
bool is_about_a_process(const std::string& line) {
  return line.starts_with("crash: ") || line.starts_with("timeout: ");
}

std::string kind_of_line(const json& failure, const std::string& line) {
  if (line.starts_with("timeout: ")) return "timeout";
  if (is_about_a_process(line)) return line.substr(0, line.find(" ("));
  const std::string kind = without_numbers(line);
  const std::size_t colon = kind.find(": ");
  const json* tensors = failure.contains("tensors") ? &failure["tensors"] : nullptr;
  const bool of_a_tensor = tensors != nullptr && colon != std::string::npos &&
                           std::any_of(tensors->begin(), tensors->end(), [&](const json& tensor) {
                             return text(tensor, "tensor") == kind.substr(0, colon);
                           });
  return of_a_tensor && is_about_values(kind) ? kind.substr(0, colon) + ": wrong values" : kind;
}

}  // namespace

std::string without_numbers(std::string_view line) {
  static const std::regex remark(R"(\([^()]*\)|\[[^\[\]]*\])");
  // 12, 0-3, 5, 0x7f, 1.2e-07; not the digits of a name such as k1 or fp8.
  static const std::regex number(
      R"((^|[^A-Za-z0-9_])[-+]?(0x[0-9a-f]+|[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)([,-] ?[0-9]+)*)");
  std::string kind(line.substr(0, line.find(';')));
  kind = std::regex_replace(kind, remark, "");
  kind = std::regex_replace(kind, number, "$1#");
  // One row or several, one element or several.
  static const std::regex several(R"(\b(row|element|code)s\b)"), their(R"(\btheir\b)");
  kind = std::regex_replace(std::regex_replace(kind, several, "$1"), their, "its");
  kind.erase(
      std::unique(kind.begin(), kind.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      kind.end());
  while (!kind.empty() && (kind.back() == ' ' || kind.back() == ',')) kind.pop_back();
  return kind;
}

std::string kind_of(const json& failed_case) {
  if (const json* finding = first(failed_case, "findings")) {
    return text(*finding, "detector") + ": " + text(*finding, "op");
  }
  const json* failure = first(failed_case, "failures");
  const json* line = failure != nullptr ? first(*failure, "lines") : nullptr;
  if (line == nullptr || !line->is_string()) return "";
  return kind_of_line(*failure, line->get<std::string>());
}

std::string look_of(const json& failed_case) {
  const json* failure = first(failed_case, "failures");
  const json* tensor = failure != nullptr ? first(*failure, "tensors") : nullptr;
  if (tensor == nullptr) return "";
  const std::string pattern = text(*tensor, "pattern");
  // "all rows from 3 on are wrong, none before" is a place: another size has others.
  const bool is_place =
      pattern.starts_with("all rows from ") || pattern.starts_with("only columns");
  return is_place ? "" : without_numbers(pattern);
}

bool look_alike(const std::string& one, const std::string& other) {
  const auto plain = [](const std::string& look) {
    const bool is_factor = look.find(" of what is expected") != std::string::npos ||
                           look.find("what is expected times a factor") != std::string::npos;
    const bool is_unwritten = look.find("never written") != std::string::npos ||
                              look.find("as before the launch") != std::string::npos;
    if (is_unwritten) return std::string("unwritten");
    return is_factor ? std::string() : look;
  };
  return plain(one) == plain(other);
}

std::string signature_of(const json& failed_case) {
  const std::string kind = kind_of(failed_case);
  if (kind.empty()) return "";
  return text(failed_case, "case") + " " + text(failed_case, "platform") + " " + kind;
}

}  // namespace plumb::bisect
