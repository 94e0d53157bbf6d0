// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/oracle.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "bisect/search/signature.h"
#include "process/shell.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

constexpr double kUsualTimeout = 300;

std::vector<std::string> words_of(const Question& question) {
  std::vector<std::string> words{"--case", question.which};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  add("--platform", question.platform);
  add("--tier", question.tier);
  add("--plugin", question.plugin);
  add("--point", question.point);
  for (const std::string& file : question.own_ops) add("--ops", file);
  for (const std::string& file : question.case_files) add("--cases", file);
  for (const std::string& setting : question.settings) add("--set", setting);
  if (question.seed != "0") add("--seed", question.seed);
  return words;
}

// True for signals of a program that crashed, false for those with which a user stops a program.
bool is_a_crash(int signal) {
  constexpr std::array kCrashes = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
  return std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end();
}

// The last line of plumb's output, without "plumb: ".
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t start = text.rfind('\n');
  if (start != std::string::npos) text.erase(0, start + 1);
  return text.starts_with("plumb: ") ? text.substr(7) : text;
}

Path path_of(const json& entry) {
  return {entry.value("case", ""),
          entry.value("platform", ""),
          entry.value("outcome", ""),
          entry.value("points", std::int64_t{0}),
          entry.value("launches", std::int64_t{0}),
          entry.value("comparisons", std::int64_t{0})};
}

json to_json(const Path& path) {
  return {{"case", path.which},    {"platform", path.platform}, {"outcome", path.outcome},
          {"points", path.points}, {"launches", path.launches}, {"comparisons", path.comparisons}};
}

std::string reason_of(const json& report, const Ended& ended) {
  for (const json& entry : report.value("cases", json::array())) {
    const std::string outcome = entry.value("outcome", "");
    if (outcome == "skipped" || outcome == "untrusted") {
      return outcome + ": " + entry.value("reason", "");
    }
  }
  const std::string line = last_line(ended.err);
  return line.empty() ? ended.how() : line;
}

void take_failure(const json& report, Answer& answer) {
  for (const json& entry : report.value("cases", json::array())) {
    if (entry.value("outcome", "") != "failed") continue;
    answer.failed = entry;
    answer.signature = signature_of(entry);
    answer.kind = kind_of(entry);
    return;
  }
}

json read_report(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return nullptr;
  json report = json::parse(file, nullptr, false);
  return report.is_object() ? report : json(nullptr);
}

}  // namespace

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return "good";
    case Verdict::bad: return "bad";
    default: return "cannot say";
  }
}

json to_json(const Question& question) {
  json asked{{"case", question.which},   {"platform", question.platform},
             {"set", question.settings}, {"cases", question.case_files},
             {"seed", question.seed},    {"tier", question.tier},
             {"plugin", question.plugin}};
  if (!question.point.empty()) asked["point"] = question.point;
  if (!question.own_ops.empty()) asked["ops"] = question.own_ops;
  return asked;
}

std::string options_text(const Question& question) {
  std::string text;
  for (const std::string& word : words_of(question)) text += " " + process::shell_quoted(word);
  return text;
}

json to_json(const Answer& answer) {
  json paths = json::array();
  for (const Path& path : answer.paths) paths.push_back(to_json(path));
  return {{"verdict", name_of(answer.verdict)},
          {"reason", answer.reason},
          {"usage", answer.usage},
          {"signature", answer.signature},
          {"kind", answer.kind},
          {"ran", paths},
          {"failed", answer.failed},
          {"seconds", answer.seconds}};
}

Answer answer_from_json(const json& from) {
  Answer answer;
  const std::string verdict = from.at("verdict");
  answer.verdict = verdict == "good"  ? Verdict::good
                   : verdict == "bad" ? Verdict::bad
                                      : Verdict::cannot_say;
  answer.reason = from.at("reason");
  answer.usage = from.at("usage");
  answer.signature = from.at("signature");
  answer.kind = from.at("kind");
  for (const json& path : from.at("ran")) answer.paths.push_back(path_of(path));
  answer.failed = from.at("failed");
  answer.seconds = from.at("seconds");
  return answer;
}

std::string path_difference(const std::vector<Path>& one, const std::vector<Path>& other) {
  if (one.size() != other.size()) {
    return fmt::format("{} cases there, {} here", one.size(), other.size());
  }
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Path &a = one[i], &b = other[i];
    if (a.which != b.which || a.platform != b.platform) {
      return fmt::format("{} on {} there, {} on {} here", a.which, a.platform, b.which, b.platform);
    }
    const bool a_stopped = a.outcome == "failed", b_stopped = b.outcome == "failed";
    const auto differ = [&](std::int64_t x, std::int64_t y) {
      if (a_stopped == b_stopped) return !a_stopped && x != y;
      return a_stopped ? x > y : y > x;
    };
    if (!differ(a.points, b.points) && !differ(a.launches, b.launches)) continue;
    return fmt::format("{} on {}: {} points and {} launches there, {} and {} here", a.which,
                       a.platform, a.points, a.launches, b.points, b.launches);
  }
  return "";
}

Answer interpret(const Ended& ended, const json& report) {
  Answer answer;
  answer.seconds = ended.seconds;
  if (ended.timed_out || is_a_crash(ended.signal)) {
    answer.verdict = Verdict::bad;
    answer.kind = ended.timed_out ? "timeout" : "plumb " + ended.how();
    answer.signature = answer.reason = answer.kind;
    return answer;
  }
  const json known = report.is_object() ? report : json::object();
  for (const json& entry : known.value("cases", json::array())) {
    answer.paths.push_back(path_of(entry));
  }
  if (ended.signal == 0 && ended.code == 0 && !answer.paths.empty()) {
    answer.verdict = Verdict::good;
    return answer;
  }
  take_failure(known, answer);
  if (ended.signal == 0 && ended.code == 1 && !answer.failed.is_null()) {
    answer.verdict = Verdict::bad;
    return answer;
  }
  answer.usage = ended.signal == 0 && ended.code == 128;
  answer.reason = reason_of(known, ended);
  return answer;
}

Oracle::Oracle(std::string program, double timeout, std::vector<std::string> further)
    : program_(std::move(program)), timeout_(timeout), further_(std::move(further)) {}

Answer Oracle::ask(const Question& question, const std::vector<std::string>& environment) const {
  const TemporaryFolder folder("plumb-oracle");
  const std::filesystem::path report = folder.path() / "report.json";
  ProcessCommand command{
      {program_, "run", "--bisect", "--quiet", "--json", report.string()}, "", environment, 0};
  // Left out if it is the default, because an older plumb may lack the option.
  if (timeout_ != kUsualTimeout) {
    command.words.insert(command.words.end(), {"--timeout", fmt::format("{}", timeout_)});
  }
  // plumb itself stops a case that takes too long, and repeats it once to find out what crashed. A
  // plumb that does not end is stopped from here.
  if (timeout_ > 0) command.timeout = 4 * timeout_ + 60;
  for (const auto& words : {further_, words_of(question)}) {
    command.words.insert(command.words.end(), words.begin(), words.end());
  }
  const Ended ended = run_process(command);
  return interpret(ended, read_report(report));
}

}  // namespace plumb::bisect
