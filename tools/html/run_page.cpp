// SPDX-License-Identifier: Apache-2.0
#include "tools/html/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "tools/html/golden_page.h"
#include "tools/html/other_pages.h"

namespace plumb::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostName = 300;   // limit of a case's name, in bytes
constexpr std::size_t kMostText = 2000;  // limit of a line, in bytes
constexpr std::size_t kLinesOfFailure = 40, kMostFailures = 4, kMostTensors = 12,
                      kPicturesOfCase = 4, kFindingsOfCase = 100;
constexpr std::size_t kMostNoScript = 300'000;

bool needs_details(const std::string& outcome) {
  return outcome == "failed" || outcome == "untrusted" || outcome == "known_bug";
}

// Rounds to four digits, which halves the size of thousands of margins. The page shows no more
// digits.
ordered_json short_number(const json& object, const char* name) {
  ordered_json value = value_in(object, name);
  if (!value.is_number_float()) return value;
  const double exact = value.get<double>();
  if (exact == 0) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(exact))) - 3);
  const double rounded = std::round(exact / unit) * unit;
  return std::isfinite(rounded)
             ? ordered_json(std::strtod(fmt::format("{:.4g}", rounded).c_str(), nullptr))
             : value;
}

ordered_json lines_in(const json& object, const char* name) {
  ordered_json lines = ordered_json::array();
  const json& all = json_array(object, name);
  for (const json& line : all) {
    if (lines.size() == kLinesOfFailure) {
      lines.push_back(
          fmt::format("… and {} more lines in the report", all.size() - kLinesOfFailure));
      break;
    }
    if (line.is_string()) lines.push_back(clipped(line.get<std::string>(), kMostText));
  }
  return lines;
}

// Text such as "3-6, 9" for an array of numbers.
std::string ranges_in(const json& object, const char* name) {
  std::string text;
  std::int64_t begin = 0, last = 0;
  bool open = false;
  const auto close = [&] {
    if (!open) return;
    text += text.empty() ? "" : ", ";
    text += begin == last ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, last);
  };
  for (const json& one : json_array(object, name)) {
    if (!one.is_number_integer()) continue;
    const auto row = one.get<std::int64_t>();
    if (open && row == last + 1) {
      last = row;
      continue;
    }
    close();
    if (text.size() > 120) return text + ", …";
    begin = last = row;
    open = true;
  }
  close();
  return text;
}

ordered_json tensor_details(const json& tensor) {
  ordered_json data{{"tensor", clipped(json_text(tensor, "tensor"), kMostName)},
                    {"wrong_rows", ranges_in(tensor, "wrong_rows")},
                    {"wrong_row_count", json_array(tensor, "wrong_rows").size()},
                    {"rows_compared", value_in(tensor, "rows_compared")},
                    {"wrong_elements", value_in(tensor, "wrong_elements")},
                    {"margin", short_number(tensor, "margin")}};
  const json& worst = json_object(tensor, "worst");
  if (!worst.empty()) {
    data["worst"] = {{"at", clipped(json_text(worst, "at"), 100)},
                     {"expected", value_in(worst, "expected")},
                     {"got", value_in(worst, "got")},
                     {"bound", value_in(worst, "bound")}};
  }
  return data;
}

ordered_json failure_details(const json& failure) {
  ordered_json data{{"context", clipped(json_text(failure, "context"), kMostText)},
                    {"lines", lines_in(failure, "lines")},
                    {"tensors", ordered_json::array()}};
  for (const json& tensor : json_array(failure, "tensors")) {
    if (data["tensors"].size() < kMostTensors) data["tensors"].push_back(tensor_details(tensor));
  }
  return data;
}

// Copies only the known members of a picture, with limits, so that a malformed report cannot break
// the page.
ordered_json picture_details(const json& one) {
  constexpr std::size_t kCells = 64, kWorst = 12;
  ordered_json data{{"shape", ordered_json::array()},
                    {"exact", one.contains("exact") && one["exact"] == true},
                    {"cells", ordered_json::array()},
                    {"worst", ordered_json::array()}};
  for (const char* name : {"tensor", "dtype", "format", "scales"})
    data[name] = clipped(json_text(one, name), kMostName);
  for (const char* name : {"counts", "wrong_values", "right_values"})
    data[name] = clipped(json_text(one, name), 4000);
  data["levels"] = clipped(json_text(one, "levels"), kCells);
  for (const char* name : {"rows", "columns", "live_rows", "group_rows", "bound_level", "right",
                           "infinite", "unpromised", "first_octave"})
    data[name] = std::round(std::clamp(json_number(one, name), -1e15, 1e15));
  for (const json& size : json_array(one, "shape")) {
    if (size.is_number_integer() && data["shape"].size() < 8)
      data["shape"].push_back(size.get<std::int64_t>());
  }
  for (const json& line : json_array(one, "cells")) {
    if (line.is_string() && data["cells"].size() < kCells)
      data["cells"].push_back(line.get<std::string>().substr(0, kCells));
  }
  for (const json& worst : json_array(one, "worst")) {
    if (data["worst"].size() == kWorst) break;
    data["worst"].push_back({{"at", clipped(json_text(worst, "at"), 100)},
                             {"expected", value_in(worst, "expected")},
                             {"got", value_in(worst, "got")},
                             {"bound", value_in(worst, "bound")},
                             {"ratio", short_number(worst, "ratio")}});
  }
  return data;
}

ordered_json details_of(const json& one) {
  ordered_json data{{"reproduce", clipped(json_text(one, "reproduce"), 2 * kMostText)}};
  for (const char* name : {"signature", "diagnosis", "right_if", "passes_if", "point", "dump"}) {
    if (const std::string text = json_text(one, name); !text.empty())
      data[name] = clipped(text, kMostText);
  }
  for (const char* name : {"contrast", "notes"}) {
    if (!json_array(one, name).empty()) data[name] = lines_in(one, name);
  }
  const json& failures = json_array(one, "failures");
  data["failures"] = ordered_json::array();
  for (const json& failure : failures) {
    if (data["failures"].size() < kMostFailures)
      data["failures"].push_back(failure_details(failure));
  }
  if (ordered_json findings = findings_in(one, kFindingsOfCase); !findings.empty())
    data["findings"] = std::move(findings);
  for (const json& picture : json_array(one, "pictures")) {
    if (data.contains("pictures") && data["pictures"].size() == kPicturesOfCase) break;
    if (json_array(picture, "cells").empty()) continue;
    data["pictures"].push_back(picture_details(picture));
  }
  if (failures.size() > kMostFailures) data["more_failures"] = failures.size() - kMostFailures;
  return data;
}

ordered_json margins_of(const json& one) {
  ordered_json margins = ordered_json::array();
  for (const json& tensor : json_array(one, "tensors")) {
    margins.push_back(
        {clipped(json_text(tensor, "tensor"), kMostName), short_number(tensor, "margin")});
  }
  return margins;
}

ordered_json golden_of(const json& one, std::size_t& room) {
  const json& golden = json_object(one, "golden");
  const std::string agreement = json_text(golden, "agreement");
  if (agreement.empty()) return nullptr;
  ordered_json data{{"agreement", clipped(agreement, 40)}};
  if (const std::string other = json_text(golden, "other_toolchain"); !other.empty())
    data["toolchain"] = clipped(other, kMostName);
  if (ordered_json drifts = moved_tensors(golden, room); !drifts.empty())
    data["drift"] = std::move(drifts);
  return data;
}

// Key of a group of failures, as plumb run groups them. Reports of earlier versions have no
// signature: then all failures of an op are one group.
std::string likeness(const json& one) {
  const std::string signature = json_text(one, "signature");
  return signature.empty() ? part_of_case(json_text(one, "case"), 0) : signature;
}

// Order in which failures get space for details: the first three of each kind, then the others.
std::vector<std::size_t> order_of_details(const json& cases) {
  std::map<std::string, int> seen;
  std::vector<std::size_t> first, others;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!needs_details(json_text(cases[i], "outcome"))) continue;
    (seen[likeness(cases[i])]++ < 3 ? first : others).push_back(i);
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

std::string simple_text(const json& value) {
  if (value.is_string()) return clipped(value.get<std::string>(), kMostName);
  if (value.is_primitive() && !value.is_null()) return clipped(value.dump(), kMostName);
  return "";
}

}  // namespace

std::string clipped(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}… ({} more bytes)", text.substr(0, end), text.size() - end);
}

ordered_json value_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  if (found->is_number()) return *found;
  return found->is_string() ? ordered_json(clipped(found->get<std::string>(), 40))
                            : ordered_json(nullptr);
}

std::string part_of_case(const std::string& id, int which) {
  std::size_t begin = 0;
  for (int i = 0; i < which; ++i) {
    const std::size_t slash = id.find('/', begin);
    if (slash == std::string::npos) return "";
    begin = slash + 1;
  }
  return id.substr(begin, which == 2 ? std::string::npos : id.find('/', begin) - begin);
}

ordered_json run_members(const json& report) {
  constexpr std::size_t kMostMembers = 40;
  ordered_json members = ordered_json::array();
  const auto add = [&](const json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string text = simple_text(value);
      if (name == "schema" || text.empty() || members.size() == kMostMembers) continue;
      members.push_back({clipped(prefix + name, 60), text});
    }
  };
  add(report, "");
  add(json_object(report, "run"), "");
  add(json_object(report, "plugin"), "plugin ");
  add(json_object(report, "interrupted"), "interrupted ");
  add(json_object(report, "provenance"), "");
  return members;
}

ordered_json run_data(const ReadReport& report) {
  const json& cases = report.json["cases"];
  ordered_json data{{"run", run_members(report.json)}, {"platforms", ordered_json::array()}};
  std::map<std::string, std::size_t> platforms;
  ordered_json all = ordered_json::array();
  std::size_t golden_room = kDriftBytes;
  for (const json& one : cases) {
    const std::string id = json_text(one, "case"), platform = json_text(one, "platform");
    const auto [at, is_new] = platforms.emplace(platform, platforms.size());
    if (is_new) data["platforms"].push_back(clipped(platform, 60));
    ordered_json brief{{"case", clipped(id, kMostName)},
                       {"platform", at->second},
                       {"outcome", clipped(json_text(one, "outcome"), 40)},
                       {"seconds", short_number(one, "seconds")}};
    if (json_number(one, "comparisons") > 0) brief["compared"] = 1;
    if (const std::string reason = json_text(one, "reason"); !reason.empty())
      brief["reason"] = clipped(reason, kMostName);
    if (ordered_json margins = margins_of(one); !margins.empty())
      brief["margins"] = std::move(margins);
    if (ordered_json golden = golden_of(one, golden_room); !golden.is_null())
      brief["golden"] = std::move(golden);
    all.push_back(std::move(brief));
  }
  std::size_t room = kDetailBytes, left_out = 0;
  for (const std::size_t i : order_of_details(cases)) {
    ordered_json details = details_of(cases[i]);
    const std::size_t size = details.dump().size();
    if (size > room) {
      ++left_out;
      continue;
    }
    room -= size;
    all[i]["details"] = std::move(details);
  }
  data["cases"] = std::move(all);
  data["cases_without_pictures"] = json_number(report.json, "cases_without_pictures");
  data["details_left_out"] = left_out;
  return data;
}

std::string failures_as_text(const ordered_json& data) {
  std::string text;
  std::size_t failures = 0;
  for (const ordered_json& one : data["cases"]) {
    if (!needs_details(one["outcome"].get<std::string>())) continue;
    ++failures;
    if (text.size() > kMostNoScript) continue;
    const auto platform = one["platform"].get<std::size_t>();
    text +=
        fmt::format("{}  {}  {}\n", one["outcome"].get<std::string>(),
                    one["case"].get<std::string>(), data["platforms"][platform].get<std::string>());
    if (!one.contains("details")) continue;
    const ordered_json& details = one["details"];
    for (const ordered_json& failure : details["failures"]) {
      for (const ordered_json& line : failure["lines"])
        text += "    " + line.get<std::string>() + "\n";
      text += "    at " + failure["context"].get<std::string>() + "\n";
    }
    if (details.contains("diagnosis"))
      text += "    " + details["diagnosis"].get<std::string>() + "\n";
    text += "    reproduce: " + details["reproduce"].get<std::string>() + "\n\n";
  }
  return failures == 0 ? "No case failed.\n" : text;
}

}  // namespace plumb::tools
