// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/signature.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cases/judge/line_kind.h"

namespace plumb::bisect {

namespace {

using cases::without_numbers;
using nlohmann::json;

std::string text(const json& object, const char* name) {
  return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
}

const json* first(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_array() || found->empty() ? nullptr : &found->front();
}

// The first wrong tensor of the first failure; nullptr if the failure is of another kind.
const json* first_tensor(const json& failed_case) {
  const json* failure = first(failed_case, "failures");
  return failure == nullptr ? nullptr : first(*failure, "tensors");
}

// Wrong and compared rows of the first wrong tensor.
std::pair<std::size_t, std::size_t> rows_of(const json& failed_case) {
  const json* tensor = first_tensor(failed_case);
  if (tensor == nullptr || !tensor->contains("wrong_rows")) return {0, 0};
  return {(*tensor)["wrong_rows"].size(), tensor->value("rows_compared", std::size_t{0})};
}

// True for elements beyond their bound, a wrong norm or direction of a row, or a bias. One defect
// can show as any of these, depending on its size.
bool is_about_values(const std::string& kind) {
  constexpr std::array<std::string_view, 3> kWords = {" wrong", "beyond its bound", "biased"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return kind.find(word) != std::string::npos; });
}

// True for a crash or timeout. The signal is part of the kind, the process is not.
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
  const json* tensor = first_tensor(failed_case);
  if (tensor == nullptr) return "";
  const std::string pattern = text(*tensor, "pattern");
  // "all rows from 3 on are wrong, none before" is a place, which changes with the size.
  const bool is_place =
      pattern.starts_with("all rows from ") || pattern.starts_with("only columns");
  return is_place ? "" : without_numbers(pattern);
}

bool is_mostly_right(const json& failed_case) {
  const auto [wrong, compared] = rows_of(failed_case);
  return wrong > 0 && 2 * wrong <= compared;
}

bool is_all_wrong(const json& failed_case) {
  const auto [wrong, compared] = rows_of(failed_case);
  return wrong > 0 && wrong == compared;
}

bool look_alike(const std::string& one, const std::string& other) {
  const auto shows_factor = [](const std::string& look) {
    return look.find(" × the expected row") != std::string::npos ||
           look.find("is a multiple of the expected row") != std::string::npos;
  };
  const auto is_one_number = [](const std::string& look) {
    return look.starts_with("every wrong element is # where ");
  };
  if (shows_factor(one) && is_one_number(other)) return true;
  if (is_one_number(one) && shows_factor(other)) return true;
  const auto plain = [&](const std::string& look) {
    const bool is_unwritten = look.find("never written") != std::string::npos ||
                              look.find("as before the launch") != std::string::npos;
    if (is_unwritten) return std::string("unwritten");
    return shows_factor(look) ? std::string() : look;
  };
  return plain(one) == plain(other);
}

std::string signature_of(const json& failed_case) {
  const std::string kind = kind_of(failed_case);
  if (kind.empty()) return "";
  return text(failed_case, "case") + " " + text(failed_case, "platform") + " " + kind;
}

}  // namespace plumb::bisect
