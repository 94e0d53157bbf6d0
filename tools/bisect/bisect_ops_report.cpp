// SPDX-License-Identifier: Apache-2.0
#include "tools/bisect/bisect_ops_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace plumb::tools {

namespace {

using bisect::Cancelling;
using bisect::Culprit;
using bisect::OpsReport;
using cases::Detector;
using cases::ReplayDifference;
using nlohmann::ordered_json;

std::string text_of(const Culprit& one) {
  const std::string call = one.call.empty() || one.call == one.op ? "" : " (" + one.call + ")";
  std::string text =
      fmt::format("    {}\n        step {}{}: {}\n", one.op, one.step, call, one.text);
  if (!one.hidden_by.empty()) {
    text += fmt::format("        hidden by {0}: shows only with {0} replaced\n", one.hidden_by);
  }
  return text;
}

std::string percent(double error) {
  return std::isinf(error) ? "not comparable" : fmt::format("{:.2g} %", 100 * error);
}

std::string text_of(const Cancelling& pair) {
  return fmt::format(
      "    {0} and {1} cancel: the steps' results are off by {2} with both, {3} with {0} alone, "
      "{4} with {1} alone\n",
      pair.one, pair.other, percent(pair.both), percent(pair.one_alone), percent(pair.other_alone));
}

// Names the part of the host's work to look at if a check of the step still fails although the
// reference replaces all ops.
std::string whose(const cases::Finding& left) {
  switch (left.detector) {
    case Detector::history: return "the host's plan of the requests";
    case Detector::order: return "the calls of the step";
    case Detector::inputs: return "the step's inputs";
    case Detector::metadata:
    case Detector::candidates: return "the metadata";
    case Detector::path:
    case Detector::ran:
    case Detector::cost:
    case Detector::address: return "the graphs or their contents";
    case Detector::reference: return "the inputs of an op: the reference is wrong on them too";
    default: return "host code around the ops";
  }
}

std::string replacement_of(const SearchedSteps& steps) {
  return steps.plugin.empty() ? "the reference" : "plumb's own kernel";
}

std::string culprits_text(const OpsReport& report) {
  std::string text;
  for (const Culprit& one : report.culprits) text += text_of(one);
  for (const Cancelling& pair : report.cancelling) text += text_of(pair);
  return text;
}

ordered_json to_json(const Culprit& one) {
  return {{"op", one.op},
          {"call", one.call},
          {"step", one.step},
          {"text", one.text},
          {"hidden_by", one.hidden_by}};
}

ordered_json to_json(const Cancelling& pair) {
  return {{"ops", {pair.one, pair.other}},
          {"error_with_both", pair.both},
          {"errors_with_one", {pair.one_alone, pair.other_alone}}};
}

const char* words_of(ReplayDifference::From from) {
  switch (from) {
    case ReplayDifference::From::the_op: return "the op";
    case ReplayDifference::From::an_op_that_may: return "an op that does not promise the same bits";
    case ReplayDifference::From::its_inputs: return "its inputs";
    case ReplayDifference::From::its_memory: return "its memory";
    case ReplayDifference::From::nothing: break;
  }
  return "no call";
}

}  // namespace

std::string report_text(const OpsReport& report, const SearchedSteps& steps, int watches) {
  const std::string owner = steps.plugin.empty() ? "" : " of plug-in " + steps.plugin;
  const std::string replaced = "replaced by " + replacement_of(steps);
  std::string text = fmt::format("{} on {}: ", steps.which, steps.platform);
  if (report.kind == OpsReport::Conclusion::ops) {
    const std::size_t count = report.culprits.size();
    text += count == 1 ? fmt::format("the culprit is an op{}\n", owner)
                       : fmt::format("{} ops{} are to blame\n", count, owner);
    text += culprits_text(report);
    text += fmt::format("    with {} {} no failure remains\n",
                        count == 1 ? report.culprits.front().op : "all of them", replaced);
  } else {
    text += fmt::format("the cause is not an op{}{}\n    with every op{} {}: {}\n", owner,
                        owner.empty() ? " but " + std::string(whose(*report.left)) : "", owner,
                        replaced, bisect::text_of(*report.left));
    if (!report.culprits.empty()) text += "  and before that finding\n" + culprits_text(report);
  }
  return text + fmt::format("    {} runs of the steps\n", watches);
}

ordered_json to_json(const OpsReport& report, const SearchedSteps& steps, int watches) {
  ordered_json json{{"kind", report.kind == OpsReport::Conclusion::ops ? "ops" : "not an op"}};
  json["replaced_by"] = replacement_of(steps);
  json["culprits"] = ordered_json::array();
  for (const Culprit& one : report.culprits) json["culprits"].push_back(to_json(one));
  json["cancelling"] = ordered_json::array();
  for (const Cancelling& pair : report.cancelling) json["cancelling"].push_back(to_json(pair));
  json["left"] = nullptr;
  if (report.left) {
    json["left"] = {{"detector", cases::name_of(report.left->detector)},
                    {"step", report.left->step},
                    {"op", report.left->op},
                    {"call", report.left->call},
                    {"text", report.left->text},
                    {"whose", whose(*report.left)}};
  }
  json["watches"] = watches;
  return json;
}

std::string report_text(const TwiceReport& report) {
  std::string text =
      fmt::format("{} on {}: two runs of the same steps differ\n", report.which, report.platform);
  for (const auto& [run, difference] : report.found) {
    text += fmt::format("    {}\n        {}\n", run, cases::text_of(difference));
  }
  return text + "    reproduce: " + report.reproduce + "\n";
}

ordered_json to_json(const TwiceReport& report, int runs) {
  ordered_json json{{"kind", "twice"}, {"platform", report.platform}};
  json["differences"] = ordered_json::array();
  for (const auto& [run, d] : report.found) {
    json["differences"].push_back({{"second_run", run},
                                   {"from", words_of(d.from)},
                                   {"step", d.step},
                                   {"op", d.op},
                                   {"call", d.call},
                                   {"tensor", d.tensor},
                                   {"rows", d.rows},
                                   {"input", d.input},
                                   {"text", cases::text_of(d)}});
  }
  json["second_runs"] = runs;
  json["reproduce"] = report.reproduce;
  return json;
}

}  // namespace plumb::tools
