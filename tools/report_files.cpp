// SPDX-License-Identifier: Apache-2.0
//
// Machine-readable reports: JSON and JUnit.
#include <fmt/format.h>
#include <plumb/plumb_ops.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/golden/drift_json.h"
#include "tools/report.h"
#include "tools/run/failure_groups.h"
#include "tools/run/report_number.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const cases::TensorReport& report) {
  ordered_json json{{"tensor", report.tensor},
                    {"rows_compared", report.rows_compared},
                    {"wrong_rows", report.wrong_rows},
                    {"wrong_elements", report.wrong_elements},
                    {"margin", report_number(report.margin)},
                    {"flips", report.flips},
                    {"pattern", report.pattern}};
  if (report.worst) {
    json["worst"] = {{"at", report.worst->coordinates},
                     {"expected", report_number(report.worst->expected)},
                     {"got", report_number(report.worst->got)},
                     {"bound", report_number(report.worst->bound)}};
  }
  return json;
}

ordered_json to_json(const cases::Failure& failure) {
  ordered_json json{{"context", failure.context}, {"lines", failure.lines}};
  if (!failure.kind.empty()) json["kind"] = failure.kind;
  for (const cases::TensorReport& report : failure.reports)
    json["tensors"].push_back(to_json(report));
  return json;
}

// Sum over all verdicts.
ordered_json to_json(const cases::Sample& sample) {
  return {{"rows", sample.rows},
          {"judged", sample.judged},
          {"repeat_a_judged_row", sample.repeated},
          {"unjudged", sample.unjudged()}};
}

ordered_json to_json(const golden::GoldenComparison& comparison) {
  ordered_json json{{"agreement", name_of(comparison.agreement)}};
  if (!comparison.toolchain.empty()) json["other_toolchain"] = comparison.toolchain;
  if (!comparison.lines.empty()) json["lines"] = comparison.lines;
  for (const golden::TensorDrift& drift : comparison.drifts) {
    json["drift"].push_back(drift_to_json(drift));
  }
  return json;
}

ordered_json to_json(const cases::Alternative& alternative) {
  return {{"contract", alternative.contract}, {"numerics", alternative.numerics}};
}

ordered_json to_json(const MissingDeclaration& missing) {
  ordered_json json = to_json(missing.declaration);
  json["op"] = missing.op;
  json["right"] = missing.right;
  json["failed"] = missing.failed;
  return json;
}

ordered_json to_json(const RunOrigin& origin) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, text] : origin) json[name] = text;
  return json;
}

ordered_json to_json(const Finished& finished, bool with_pictures) {
  const cases::CaseResult& result = finished.result;
  ordered_json json{{"case", result.id},
                    {"platform", result.platform},
                    {"outcome", name_of(result.outcome)},
                    {"reason", result.reason},
                    {"points", result.points},
                    {"launches", result.launches},
                    {"comparisons", result.comparisons},
                    {"seconds", finished.seconds},
                    {"reproduce", finished.reproduce}};
  if (finished.trivial) json["trivial"] = true;
  if (is_failure(finished)) json["signature"] = signature_of(finished);
  if (!finished.dump.empty()) json["dump"] = finished.dump;
  if (!finished.dump_trouble.empty()) json["dump_trouble"] = finished.dump_trouble;
  if (!finished.notes.empty()) json["notes"] = finished.notes;
  if (!finished.features.empty()) json["features"] = finished.features;
  if (!result.diagnosis.empty()) json["diagnosis"] = result.diagnosis;
  if (!finished.contrast.empty()) json["contrast"] = finished.contrast;
  if (!result.right_under.empty()) json["right_if"] = right_if(result.right_under);
  for (const cases::Alternative& one : result.right_under) {
    json["right_under"].push_back(to_json(one));
  }
  if (!result.passes_under.empty()) json["passes_if"] = passes_if(result.passes_under);
  for (const cases::Alternative& one : result.passes_under) {
    json["passes_under"].push_back(to_json(one));
  }
  if (!result.failed_at.empty()) json["point"] = result.failed_at;
  for (const cases::TensorSummary& tensor : result.tensors) {
    json["tensors"].push_back({{"tensor", tensor.tensor},
                               {"elements_compared", tensor.elements_compared},
                               {"margin", report_number(tensor.margin)},
                               {"observability", report_number(tensor.observability)},
                               {"most_observable", report_number(tensor.most_observable)},
                               {"flips", tensor.flips}});
    if (!tensor.flip.empty()) json["tensors"].back()["first_flip"] = tensor.flip;
    if (tensor.sample.rows > 0) json["tensors"].back()["sample"] = to_json(tensor.sample);
  }
  if (finished.golden.agreement != golden::Agreement::not_asked) {
    json["golden"] = to_json(finished.golden);
  }
  for (const cases::Failure& failure : result.failures)
    json["failures"].push_back(to_json(failure));
  for (const cases::Finding& finding : finished.findings) {
    json["findings"].push_back({{"detector", name_of(finding.detector)},
                                {"step", finding.step},
                                {"position", finding.position},
                                {"op", finding.op},
                                {"call", finding.call},
                                {"text", finding.text}});
  }
  if (!with_pictures) return json;
  for (const TensorPicture& picture : finished.pictures) {
    json["pictures"].push_back(to_json(picture));
  }
  return json;
}

// Cases whose pictures are in the report. One wrong line fails hundreds of cases with similar
// pictures, so five per op, scenario and tensor are enough, and 150 in all.
std::set<const Finished*> with_pictures(const std::vector<Finished>& all) {
  constexpr std::size_t kMostCases = 150;
  constexpr int kMostAlike = 5;
  std::map<std::string, int> alike;
  std::set<const Finished*> chosen;
  for (const Finished& f : all) {
    if (f.pictures.empty() || chosen.size() == kMostCases) continue;
    const std::string kind = f.op + " " + f.scenario + " " + f.pictures.front().tensor;
    if (++alike[kind] <= kMostAlike) chosen.insert(&f);
  }
  return chosen;
}

std::string margins(const cases::CaseResult& result) {
  std::string text;
  for (const cases::TensorSummary& tensor : result.tensors) {
    text += fmt::format("      <property name=\"margin.{}\" value=\"{:.4g}\"/>\n", tensor.tensor,
                        tensor.margin);
  }
  return text;
}

// The text that CI systems show without a click.
std::string first_finding(const cases::CaseResult& result) {
  const bool named = !result.failures.empty() && !result.failures.front().lines.empty();
  if (!named) return result.reason.empty() ? std::string(name_of(result.outcome)) : result.reason;
  const std::string& line = result.failures.front().lines.front();
  const bool has_cause = result.diagnosis.starts_with("looks like: ");
  return has_cause ? line + "; " + result.diagnosis : line;
}

std::string testcase_xml(const Finished& finished) {
  const cases::CaseResult& result = finished.result;
  std::string text =
      fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3f}\">\n",
                  escape_xml(result.id), escape_xml(result.platform), finished.seconds);
  text += "    <properties>\n" + margins(result) + "    </properties>\n";
  if (result.outcome == cases::Outcome::skipped) {
    text += fmt::format("      <skipped message=\"{}\"/>\n", escape_xml(result.reason));
  } else if (const std::string failure = failure_text(finished, {}); !failure.empty()) {
    text += fmt::format("      <failure message=\"{}\">{}</failure>\n",
                        escape_xml(first_finding(result)), escape_xml(failure));
  }
  return text + "    </testcase>\n";
}

// Properties of a suite, from the cases of its platform.
std::string declarations_xml(const std::vector<Finished>& all, std::string_view platform) {
  std::string text;
  for (const MissingDeclaration& one : missing_declarations(all, platform)) {
    text += fmt::format("      <property name=\"right_under.{}\" value=\"{}\"/>\n", one.op,
                        escape_xml(one.text()));
  }
  return text.empty() ? "" : "    <properties>\n" + text + "    </properties>\n";
}

// A test with an error, so that the file is not taken for a complete run.
std::string interruption_xml(const Interruption& interruption, std::size_t done) {
  return fmt::format(
      "  <testsuite name=\"plumb run\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n"
      "    <testcase name=\"interrupted\" classname=\"plumb run\" time=\"0\">\n"
      "      <error message=\"{}\"/>\n    </testcase>\n  </testsuite>\n",
      escape_xml(text_of(interruption, done)));
}

// A pipe or a device cannot be replaced by a rename.
bool is_replaced(const std::string& path) {
  std::error_code missing;
  return !std::filesystem::exists(path, missing) || std::filesystem::is_regular_file(path, missing);
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      // XML cannot represent the other control characters.
      default: escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? '?' : c;
    }
  }
  return escaped;
}

std::string to_json(const RunReport& report) {
  const auto& [all, tier, seed, plugin, interruption, origin, share, told, without_pictures] =
      report;
  const int code = told                  ? *told
                   : interruption        ? interruption->exit_code
                   : proves_nothing(all) ? 1
                                         : exit_code(all);
  ordered_json json{{"schema", 1}, {"tier", tier}, {"seed", seed}, {"exit_code", code}};
  if (!origin.empty()) json["run"] = to_json(origin);
  if (share) {
    json["shard"] = {{"index", share->index}, {"total", share->total}, {"numbers", share->numbers}};
  }
  if (interruption) {
    json["interrupted"] = {
        {"why", interruption->why}, {"done", all.size()}, {"cases", interruption->cases}};
  }
  if (plugin) {
    json["plugin"] = {{"path", plugin->path},
                      {"name", plugin->name},
                      {"version", plugin->version},
                      {"abi_version", PLUMB_ABI_VERSION},
                      {"ops", plugin->ops}};
  }
  std::map<std::string, int> outcomes;
  for (const Finished& f : all) ++outcomes[std::string(name_of(f.result.outcome))];
  json["outcomes"] = outcomes;
  ordered_json coverage = ordered_json::object();
  for (const Finished& f : all) {
    ordered_json& cell = coverage[f.op][f.scenario][f.result.platform];
    cell = (cell.is_null() ? 0 : cell.get<int>()) + (f.result.comparisons > 0 ? 1 : 0);
  }
  json["coverage"] = coverage;
  json["sampled"] = sampled_cases(all).cases;
  json["right_under"] = ordered_json::array();
  for (const MissingDeclaration& one : missing_declarations(all)) {
    json["right_under"].push_back(to_json(one));
  }
  json["cases"] = ordered_json::array();
  const std::set<const Finished*> pictured = with_pictures(all);
  for (const Finished& f : all) json["cases"].push_back(to_json(f, pictured.contains(&f)));
  const auto has_pictures = [](const Finished& f) { return !f.pictures.empty(); };
  const auto left_out =
      std::ranges::count_if(all, has_pictures) - std::ssize(pictured) + without_pictures;
  if (left_out > 0) json["cases_without_pictures"] = left_out;
  // Paths in a command line need not be UTF-8, but JSON must be.
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string to_json_line(const Finished& finished) {
  return to_json(finished, false).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string to_junit(const std::vector<Finished>& all,
                     const std::optional<Interruption>& interruption) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  std::map<std::string, std::vector<const Finished*>> suites;
  for (const Finished& f : all) suites[f.result.platform].push_back(&f);
  for (const auto& [platform, cases] : suites) {
    int failures = 0, skipped = 0;
    std::string body;
    for (const Finished* f : cases) {
      failures += f->result.outcome == cases::Outcome::failed ||
                  f->result.outcome == cases::Outcome::untrusted;
      skipped += f->result.outcome == cases::Outcome::skipped;
      body += testcase_xml(*f);
    }
    text +=
        fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}{}",
                    escape_xml(platform), cases.size(), failures, skipped,
                    declarations_xml(all, platform), body);
    text += "  </testsuite>\n";
  }
  if (interruption) text += interruption_xml(*interruption, all.size());
  return text + "</testsuites>\n";
}

void check_writable(const std::string& path) {
  const auto require = [&](bool holds, const std::string& why) {
    if (!holds) throw UsageError(fmt::format("cannot write {}: {}", path, why));
  };
  std::error_code error;
  require(!std::filesystem::is_directory(path, error), "it is a folder");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string beside = folder.empty() ? "." : folder.string();
  require(std::filesystem::is_directory(beside, error), "there is no folder " + beside);
  const std::string& touched = is_replaced(path) ? beside : path;
  const bool allowed = access(touched.c_str(), W_OK) == 0;
  const std::string why = std::strerror(errno);  // read at once: a later call may change errno
  require(allowed, why);
}

void write_file(const std::string& path, const std::string& text) {
  const bool replace = is_replaced(path);
  const std::string target = replace ? fmt::format("{}.{}.part", path, getpid()) : path;
  std::ofstream file(target, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  const bool written = !file.fail();
  if (written && (!replace || std::rename(target.c_str(), path.c_str()) == 0)) return;
  const std::string why = std::strerror(errno);
  if (replace) std::remove(target.c_str());
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, why));
}

}  // namespace plumb::tools
