// SPDX-License-Identifier: Apache-2.0
#include "tools/faults/faults_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace plumb::tools {

namespace {

using cases::Detector;
using cases::FinishedRun;
using cases::Shares;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, cases::kDetectors> kShort{
    "err", "his", "inp", "ran", "ord", "adr", "cnd", "cnv", "met",
    "ref", "sta", "eag", "twn", "pad", "pth", "cst", "frs", "aln"};
constexpr std::size_t kNameWidth = 32;

std::string mark_of(const FinishedRun& one, Detector detector, const Style& style) {
  const bool seen = one.result.found_by(detector);
  if (one.run.fault->within_numerics) return seen ? style.paint("!", "1;31") : ".";
  const bool meant = detector == one.run.fault->seen_by;
  if (detector == one.run.fault->blind) return seen ? style.paint("!", "1;31") : "o";
  if (meant) return seen ? style.paint("X", "32") : style.paint("-", "1;31");
  return seen ? "x" : ".";
}

std::string outcome_of(const FinishedRun& one, const Style& style) {
  if (one.skipped()) return "skipped";
  if (one.run.fault->within_numerics) {
    return one.is_within_numerics() ? style.paint("within the numerics", "32")
                                    : style.paint("NOT WITHIN THE NUMERICS", "1;31");
  }
  return one.found() ? style.paint("found", "32") : style.paint("MISSED", "1;31");
}

// Example: "step 3, sparse_mla_decode (layer 1 attention)".
std::string place_of(const cases::Finding& first) {
  const std::string op = first.op.empty() ? "no op" : first.op;
  const bool named = !first.call.empty() && first.call != first.op;
  return fmt::format("step {}, {}{}", first.step, op, named ? " (" + first.call + ")" : "");
}

// The op blamed first, and the broken op if it is another one.
std::string blame_of(const FinishedRun& one) {
  const std::string broken = "; broken: " + one.run.fault->broken;
  if (one.skipped()) return one.run.not_here;
  if (!one.died.empty()) return "crash: " + one.died + broken;
  if (one.run.fault->within_numerics && one.result.clean()) {
    return fmt::format("{} of {} choices flip", one.result.flips, one.result.choices);
  }
  if (one.result.clean()) return "nothing seen" + broken;
  return "blamed first: " + place_of(one.result.findings.front()) + (one.blamed() ? "" : broken);
}

double percent(int part, int whole) { return whole == 0 ? 0 : 100.0 * part / whole; }

std::string name_of_schedule(const FinishedRun& one) {
  return fmt::format("{}: {} ({})", one.run.setup.platform, one.run.name,
                     text_of(one.run.schedule));
}

ordered_json to_json(const cases::Finding& finding) {
  return {{"detector", name_of(finding.detector)},
          {"step", finding.step},
          {"op", finding.op},
          {"call", finding.call},
          {"text", finding.text}};
}

// JSON members common to runs with and without a fault.
ordered_json common_json(const FinishedRun& one) {
  ordered_json json{{"name", one.run.name},
                    {"platform", one.run.setup.platform},
                    {"mode", name_of(one.run.setup.mode)},
                    {"schedule", text_of(one.run.schedule)},
                    {"steps", one.result.steps},
                    {"calls_judged", one.result.calls_judged}};
  if (!one.died.empty()) json["died"] = one.died;
  json["findings"] = ordered_json::array();
  for (const cases::Finding& finding : one.result.findings) {
    json["findings"].push_back(to_json(finding));
  }
  return json;
}

ordered_json to_json(const cases::Diagnosis& diagnosis) {
  ordered_json json{{"text", text_of(diagnosis)},
                    {"not_tried", diagnosis.left_out},
                    {"named", ordered_json::array()}};
  for (const cases::Explanation& one : diagnosis.named) {
    json["named"].push_back({{"fault", one.name},
                             {"wrong_values", one.match.wrong},
                             {"explained", one.match.explained}});
  }
  return json;
}

ordered_json elsewhere_json(const FinishedRun& one) {
  ordered_json json = common_json(one);
  if (one.skipped()) {
    json["skipped"] = one.run.not_here;
  } else if (!one.result.clean()) {
    json["named"] = one.diagnosis.names(one.run.fault->name);
    json["diagnosis"] = to_json(one.diagnosis);
  }
  return json;
}

ordered_json fault_json(const FinishedRun& one) {
  const cases::DecodeFault& fault = *one.run.fault;
  ordered_json json = common_json(one);
  json["stands_for"] = fault.stands_for;
  json["broken"] = fault.broken;
  json["seen_by"] = name_of(fault.seen_by);
  json["blind"] = name_of(fault.blind);
  if (one.skipped()) {
    json["skipped"] = one.run.not_here;
    return json;
  }
  if (fault.within_numerics) {
    json["within_numerics"] = one.is_within_numerics();
    json["choices"] = one.result.choices;
    json["flips"] = one.result.flips;
    return json;
  }
  json["found"] = one.found();
  json["blamed_first"] = one.blamed();
  json["blind_saw_it"] = one.tempted();
  return json;
}

}  // namespace

std::string fault_matrix_legend() {
  constexpr int kPerLine = 7;
  std::string text;
  for (int i = 0; i < cases::kDetectors; ++i) {
    text += fmt::format("{}{} {}",
                        i == 0              ? ""
                        : i % kPerLine == 0 ? ",\n"
                                            : ", ",
                        kShort[static_cast<std::size_t>(i)], name_of(static_cast<Detector>(i)));
  }
  return text +
         "\nX detector for this fault, - that detector saw nothing, x another detector saw it,"
         "\no detector that should miss it, ! that detector saw it\n";
}

std::string fault_matrix_head(const std::string& platform, const Style& style) {
  const std::string head = fmt::format("{:<{}} {}", platform, kNameWidth, fmt::join(kShort, " "));
  return "\n" + style.paint(head, "1") + "\n";
}

std::string fault_text(const FinishedRun& one, const Style& style) {
  std::string text = fmt::format("{:<{}}", one.run.name, kNameWidth);
  for (int i = 0; i < cases::kDetectors; ++i) {
    const bool there = !one.skipped() && one.died.empty();
    text += fmt::format("  {} ", there ? mark_of(one, static_cast<Detector>(i), style) : " ");
  }
  text += fmt::format(" {}\n    {}; {}\n", outcome_of(one, style), one.run.fault->stands_for,
                      blame_of(one));
  if (!one.tempted() || one.run.fault->within_numerics) return text;
  return text + fmt::format("    {} saw it, but should miss it\n", name_of(one.run.fault->blind));
}

std::string elsewhere_head(const Style& style) {
  return "\n" + style.paint("second setup: other geometries, schedules and seeds", "1") + "\n";
}

std::string elsewhere_text(const FinishedRun& one, const Style& style) {
  const std::string& name = one.run.fault->name;
  std::string outcome = style.paint("NOT NAMED", "1;31");
  if (one.diagnosis.names(name)) outcome = style.paint("named", "32");
  if (one.diagnosis.names_among_others(name)) outcome = "named with others";
  if (one.died.empty() && one.result.clean()) outcome = "no finding";
  std::string text =
      fmt::format("{:<{}} {:<11} {}\n", name, kNameWidth, one.run.setup.platform, outcome);
  if (!one.died.empty()) return text + "    crash: " + one.died + "\n";
  if (one.result.clean()) return text;
  return text +
         fmt::format("    {}; {}\n", place_of(one.result.findings.front()), text_of(one.diagnosis));
}

std::string alarm_text(const FinishedRun& one, const Style& style) {
  if (!one.alarm()) return "";
  std::string text = fmt::format("{}  {}\n", style.paint("ALARM", "1;31"), name_of_schedule(one));
  if (!one.died.empty()) return text + "    crash: " + one.died + "\n";
  if (one.result.clean()) {
    return text + fmt::format("    {} steps and {} calls judged\n", one.result.steps,
                              one.result.calls_judged);
  }
  const cases::Finding& first = one.result.findings.front();
  return text + fmt::format("    {}, {}: {}\n    {}\n", name_of(first.detector), place_of(first),
                            first.text, text_of(one.diagnosis));
}

std::string shares_text(const Shares& s, const Style& style) {
  std::string text = "\n";
  if (s.faults + s.skipped > 0) {
    text += fmt::format(
        "{} of {} faults found ({:.0f} %); broken op blamed first: {} "
        "({:.0f} %); skipped: {}\n",
        s.found, s.faults, percent(s.found, s.faults), s.blamed, percent(s.blamed, s.faults),
        s.skipped);
  }
  if (s.shown > 0) {
    text += fmt::format(
        "second setup: {} faults give findings; the diagnosis names {} ({:.0f} %), and {} with "
        "others that act alike\n",
        s.shown, s.named, percent(s.named, s.shown), s.among_others);
  }
  if (s.within_numerics > 0) {
    text += fmt::format("within the numerics, as expected: {}\n", s.within_numerics);
  }
  text += fmt::format("without a fault: {} steps in {} schedules, {} calls judged, {} alarms\n",
                      s.clean_steps, s.clean_runs, s.calls_judged, s.alarms);
  const std::vector<std::string> against = objections(s);
  if (against.empty()) return text + style.paint("passed", "32") + "\n";
  return text + style.paint("failed", "1;31") + ": " + fmt::to_string(fmt::join(against, "; ")) +
         "\n";
}

int exit_code(const Shares& shares) {
  if (!objections(shares).empty()) return 1;
  const int faults = shares.faults + shares.within_numerics + shares.shown;
  return faults + shares.clean_runs > 0 ? 0 : 2;
}

std::string to_json(const std::vector<FinishedRun>& all) {
  const Shares shares = shares_of(all);
  ordered_json json{{"found", shares.found},
                    {"blamed_first", shares.blamed},
                    {"of_faults", shares.faults},
                    {"clean_steps", shares.clean_steps},
                    {"alarms", shares.alarms},
                    {"objections", objections(shares)},
                    {"exit_code", exit_code(shares)},
                    {"shown_elsewhere", shares.shown},
                    {"named_elsewhere", shares.named},
                    {"faults", ordered_json::array()},
                    {"elsewhere", ordered_json::array()},
                    {"clean", ordered_json::array()}};
  for (const FinishedRun& one : all) {
    if (one.run.elsewhere) {
      json["elsewhere"].push_back(elsewhere_json(one));
    } else if (one.run.fault != nullptr) {
      json["faults"].push_back(fault_json(one));
    } else {
      json["clean"].push_back(common_json(one));
      if (one.alarm()) json["clean"].back()["diagnosis"] = to_json(one.diagnosis);
    }
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace plumb::tools
