// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/judge_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;
using trace::CallReport;

constexpr std::size_t kListed = 20;  // limit of further wrong calls, and of reasons

std::string standing(const CallReport& call) {
  return call.failed() ? "failed" : call.passed() ? "passed" : "not judged";
}

ordered_json to_json(const CallReport& call) {
  ordered_json json{{"call", call_id(call)},    {"rank", call.rank},     {"step", call.step},
                    {"index", call.index},      {"op", call.op},         {"name", call.name},
                    {"layer", call.layer},      {"stream", call.stream}, {"replay", call.replay},
                    {"outcome", standing(call)}};
  if (call.rows > 0) {
    json["rows"] = call.rows;
    json["rows_judged"] = call.rows_judged;
  }
  if (!call.profile.empty()) json["profile"] = call.profile;
  if (!call.failures.empty()) json["failures"] = call.failures;
  if (!call.non_finite.empty()) json["non_finite"] = call.non_finite;
  return json;
}

ordered_json to_json(const OpCount& count) {
  return {{"calls", count.calls},
          {"passed", count.passed},
          {"failed", count.failed},
          {"not_judged", count.not_judged},
          {"margin", count.margin}};
}

ordered_json to_json(const SampledCalls& sampled) {
  return {{"calls", sampled.calls},
          {"rows", sampled.rows},
          {"rows_judged", sampled.judged},
          {"chance_of_missing_one_percent", sampled.chance},
          {"chance_of_missing_one_percent_in_all_calls", sampled.chance_in_all}};
}

std::string alone_text(const std::string& path, const CallReport& call) {
  return fmt::format("      this call alone: plumb judge {} --call {}\n", path, call_id(call));
}

void count_in(const CallReport& call, SampledCalls& sampled) {
  const double chance = cases::chance_of_missing(call.rows, call.rows_judged);
  ++sampled.calls;
  sampled.rows += call.rows;
  sampled.judged += call.rows_judged;
  sampled.chance_in_all *= chance;
  if (chance < sampled.chance) return;
  sampled.chance = chance;
  sampled.fewest = call.rows_judged;
  sampled.of = call.rows;
}

void count_in(const CallReport& call, OpCount& count) {
  ++count.calls;
  count.passed += call.passed();
  count.failed += call.failed();
  count.not_judged += !call.passed() && !call.failed();
  if (call.passed()) count.margin = std::max(count.margin, call.margin);
}

}  // namespace

std::string call_id(const trace::CallPlace& call) {
  return fmt::format("{}/{}/{}", call.rank, call.step, call.index);
}

std::string place_of(const trace::CallPlace& call) {
  std::string text = fmt::format("step {}, call {} of {}", call.step, call.index, call.calls);
  if (call.rank != 0) text = fmt::format("rank {}, {}", call.rank, text);
  if (call.layer >= 0) text += fmt::format(", layer {}", call.layer);
  text += ": " + call.kind();
  if (!call.name.empty() && call.name != call.kind()) text += fmt::format(" ({})", call.name);
  text += call.replay < 0 ? ", eager" : fmt::format(", replay {} of a graph", call.replay);
  if (call.stream != 0) text += fmt::format(", stream {}", call.stream);
  return text;
}

std::string call_text(const CallReport& call) {
  std::string text;
  for (const std::string& line : call.failures) text += fmt::format("      {}\n", line);
  if (!call.non_finite.empty()) text += fmt::format("      {}\n", call.non_finite);
  return text;
}

void TraceSummary::add(CallReport call) {
  std::string& calls = timeline_[{call.step, call.rank}];
  const auto index = static_cast<std::size_t>(call.index);
  if (calls.size() <= index) calls.resize(index + 1, ' ');
  calls[index] = call.failed() ? 'x' : call.passed() ? '.' : '-';
  count_in(call, total_);
  count_in(call, ops_[call.kind()]);
  if (call.rows > 0) count_in(call, sampled_[call.op]);
  if (!call.profile.empty()) profiles_[call.op] = call.profile;
  if (!call.passed() && !call.failed()) ++not_judged_[{call.kind(), call.not_judged}];
  if (!call.non_finite.empty() && !first_non_finite_) first_non_finite_ = call;
  if (call.failed()) wrong_.push_back(std::move(call));
}

int TraceSummary::exit_code() const {
  if (total_.failed > 0 || first_non_finite_ || chains_.failed() || ranks_.failed()) {
    return 1;
  }
  return total_.passed > 0 || ranks_.compared() ? 0 : 2;
}

std::string TraceSummary::table_text(const Style& style) const {
  std::string text =
      style.paint(fmt::format("{:<44}{:>8}{:>8}{:>8}{:>12}  {}\n", "op", "calls", "passed",
                              "failed", "not judged", "largest error / bound"),
                  "1");
  for (const auto& [op, count] : ops_) {
    text += fmt::format("{:<44}{:>8}{:>8}{:>8}{:>12}  {}\n", op, count.calls, count.passed,
                        count.failed, count.not_judged,
                        count.margin > 0 ? fmt::format("{:.3g}", count.margin) : "");
  }
  return text;
}

std::string TraceSummary::not_judged_text() const {
  if (not_judged_.empty()) return "";
  std::string text = "not judged:\n";
  std::size_t listed = 0;
  for (const auto& [what, count] : not_judged_) {
    if (listed++ == kListed) {
      text += fmt::format("  and {} more reasons: --json has all\n", not_judged_.size() - kListed);
      break;
    }
    text += fmt::format("{:>6} of {}: {}\n", count, what.first, what.second);
  }
  return text;
}

std::string TraceSummary::sampled_text() const {
  std::string text;
  for (const auto& [op, sampled] : sampled_) {
    text += fmt::format(
        "{}: {} of {} rows of {} large {} were judged (--rows 0: all). A defect in 1 % of the rows "
        "is missed in a call of {} rows, of which {} are judged, with a probability of {:.3g} %",
        op, sampled.judged, sampled.rows, sampled.calls, sampled.calls == 1 ? "call" : "calls",
        sampled.of, sampled.fewest, 100 * sampled.chance);
    if (sampled.calls > 1)
      text += fmt::format(", in all with {:.3g} %", 100 * sampled.chance_in_all);
    text += "\n";
  }
  return text;
}

std::string TraceSummary::profiles_text() const {
  std::vector<std::string> parts;
  for (const auto& [op, source] : profiles_) parts.push_back(op + " " + source);
  return parts.empty() ? "" : fmt::format("by profiles: {}\n", fmt::join(parts, ", "));
}

std::string TraceSummary::text(const Style& style) const {
  std::string text;
  if (!wrong_.empty()) {
    text += style.paint("FIRST WRONG CALL", "31;1") + "  " + place_of(wrong_.front()) + "\n" +
            call_text(wrong_.front());
    text += alone_text(path_, wrong_.front());
  }
  if (first_non_finite_ &&
      (wrong_.empty() || call_id(wrong_.front()) != call_id(*first_non_finite_))) {
    text += style.paint("FIRST NaN OR INFINITY", "31;1") + "  " + place_of(*first_non_finite_) +
            "\n      " + first_non_finite_->non_finite + "\n" +
            alone_text(path_, *first_non_finite_);
  }
  text += chains_.failure_text(style) + ranks_.failure_text(style);
  for (std::size_t i = 1; i < wrong_.size() && i <= kListed; ++i) {
    text += fmt::format("wrong too: {}\n", place_of(wrong_[i]));
  }
  if (wrong_.size() > kListed + 1) {
    text += fmt::format("and {} more wrong calls: --json has all\n", wrong_.size() - kListed - 1);
  }
  if (!text.empty()) text += "\n";
  text += table_text(style) + not_judged_text() + sampled_text() + profiles_text() +
          chains_.text() + ranks_.text();
  text += fmt::format("{} {}: {} passed, {} failed, {} not judged\n", total_.calls,
                      total_.calls == 1 ? "call" : "calls", total_.passed, total_.failed,
                      total_.not_judged);
  return text;
}

std::string TraceSummary::json(const std::optional<Interruption>& interruption) const {
  ordered_json json{{"schema", 1},
                    {"trace", path_},
                    {"exit_code", interruption ? interruption->exit_code : exit_code()},
                    {"provenance", provenance_},
                    {"total", to_json(total_)}};
  if (interruption) json["interrupted"] = interruption->why;
  json["ops"] = ordered_json::object();
  for (const auto& [op, count] : ops_) json["ops"][op] = to_json(count);
  json["profiles"] = profiles_;
  json["sampled"] = ordered_json::object();
  for (const auto& [op, sampled] : sampled_) json["sampled"][op] = to_json(sampled);
  json["not_judged"] = ordered_json::array();
  for (const auto& [what, count] : not_judged_) {
    json["not_judged"].push_back({{"op", what.first}, {"why", what.second}, {"calls", count}});
  }
  json["first_non_finite"] = first_non_finite_ ? to_json(*first_non_finite_) : ordered_json();
  json["chains"] = chains_.json();
  json["ranks"] = ranks_.json();
  json["timeline"] = ordered_json::array();
  for (const auto& [place, calls] : timeline_) {
    json["timeline"].push_back({{"rank", place.second}, {"step", place.first}, {"calls", calls}});
  }
  json["wrong"] = ordered_json::array();
  for (const CallReport& call : wrong_) json["wrong"].push_back(to_json(call));
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// One test per op, and one per wrong call.
std::string TraceSummary::junit() const {
  std::string body;
  for (const auto& [op, count] : ops_) {
    if (count.passed == 0 && count.failed == 0) {
      body += fmt::format(
          "    <testcase name=\"{}\" classname=\"trace\">\n      <skipped "
          "message=\"no call was judged\"/>\n    </testcase>\n",
          escape_xml(op));
    } else {
      body += fmt::format("    <testcase name=\"{}\" classname=\"trace\"/>\n", escape_xml(op));
    }
  }
  for (const CallReport& call : wrong_) {
    body += fmt::format(
        "    <testcase name=\"call {}\" classname=\"trace\">\n      <failure message=\"{}\">{}"
        "</failure>\n    </testcase>\n",
        call_id(call), escape_xml(place_of(call)), escape_xml(call_text(call)));
  }
  if (first_non_finite_ && !first_non_finite_->failed()) {
    body += fmt::format(
        "    <testcase name=\"call {}\" classname=\"trace\">\n      <failure message=\"{}\">{}"
        "</failure>\n    </testcase>\n",
        call_id(*first_non_finite_), escape_xml(place_of(*first_non_finite_)),
        escape_xml(first_non_finite_->non_finite));
  }
  body += chains_.junit() + ranks_.junit();
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"plumb "
      "judge\">\n{}  </testsuite>\n</testsuites>\n",
      body);
}

}  // namespace plumb::tools
