// SPDX-License-Identifier: Apache-2.0
#include "tools/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/diagnosis.h"
#include "process/terminal.h"

namespace plumb::tools {

namespace {

using cases::Outcome;

int count(const std::vector<Finished>& all, Outcome outcome) {
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const Finished& f) { return f.result.outcome == outcome; }));
}

std::string headline(const Finished& finished, const Style& style) {
  const cases::CaseResult& result = finished.result;
  const bool failed = result.outcome == Outcome::failed;
  const std::string word = failed ? style.paint("FAIL", "1;31") : style.paint("UNTRUSTED", "1;33");
  return fmt::format("{}  {}   {}\n", word, result.id, result.platform);
}

// The diagnosis, without its sentence about the pattern of wrong rows if the failure's lines
// contain that sentence already.
std::string diagnosis_line(const cases::CaseResult& result) {
  const std::size_t end = result.diagnosis.find("; ");
  const auto& lines = result.failures.front().lines;
  const bool repeats =
      end != std::string::npos &&
      std::find(lines.begin(), lines.end(), result.diagnosis.substr(end + 2)) != lines.end();
  return repeats ? result.diagnosis.substr(0, end) : result.diagnosis;
}

std::string skip_reasons(const std::vector<Finished>& all) {
  std::map<std::string, int> reasons;
  for (const Finished& f : all) {
    if (f.result.outcome == Outcome::skipped) ++reasons[f.result.platform + ": " + f.result.reason];
  }
  std::string text;
  for (const auto& [reason, cases] : reasons)
    text += fmt::format("  skipped {:4}  {}\n", cases, reason);
  return text;
}

std::string noted_text(const std::vector<Finished>& all) {
  std::map<std::string, int> notes;
  for (const Finished& f : all) {
    for (const std::string& note : f.notes) ++notes[note];
  }
  std::string text;
  for (const auto& [note, cases] : notes) text += fmt::format("  noted {:6}  {}\n", cases, note);
  return text;
}

std::string slowest(const std::vector<Finished>& all) {
  std::vector<const Finished*> order;
  for (const Finished& f : all) order.push_back(&f);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  std::string text = "slowest";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
    text += fmt::format("{} {:.1f} s {} {}", i ? "," : "", order[i]->seconds, order[i]->result.id,
                        order[i]->result.platform);
  }
  return text + "\n";
}

std::string phase_shares(const std::vector<Finished>& all) {
  cases::Phases sum;
  for (const Finished& f : all) {
    sum.fill += f.result.phases.fill;
    sum.reference += f.result.phases.reference;
    sum.device += f.result.phases.device;
    sum.judge += f.result.phases.judge;
  }
  const double total = sum.fill + sum.reference + sum.device + sum.judge;
  if (total == 0) return "";  // a report that was read from a file has no times
  return fmt::format("time    fill {:.0f} %, reference {:.0f} %, device {:.0f} %, judge {:.0f} %\n",
                     100 * sum.fill / total, 100 * sum.reference / total, 100 * sum.device / total,
                     100 * sum.judge / total);
}

// States how many rows were judged, so that a sample is not taken for a full comparison.
std::string sampled_text(const std::vector<Finished>& all) {
  const SampledCases sampled = sampled_cases(all);
  if (sampled.cases == 0) return "";
  return fmt::format("sampled {:4} cases: {}\n", sampled.cases, cases::text_of(sampled.sum));
}

std::string drift_text(const Finished& finished) {
  std::string text = fmt::format("  {} {}: {}\n", finished.result.id, finished.result.platform,
                                 finished.golden.toolchain);
  for (const golden::TensorDrift& drift : finished.golden.drifts) {
    text += "    " + golden::text_of(drift) + "\n";
  }
  return text;
}

std::string declarations_text(const std::vector<Finished>& all) {
  std::string text;
  for (const MissingDeclaration& one : missing_declarations(all)) text += one.text() + "\n";
  return text;
}

// Counts of cases by their difference from their golden (a stored earlier result), and the cases
// whose difference is close to its bound.
std::string golden_text(const std::vector<Finished>& all, const Style& style) {
  std::map<golden::Agreement, int> counts;
  std::string near;
  for (const Finished& f : all) {
    ++counts[f.golden.agreement];
    if (f.golden.agreement == golden::Agreement::near_bound) near += drift_text(f);
  }
  if (counts[golden::Agreement::not_asked] == static_cast<int>(all.size())) return "";
  std::string text =
      fmt::format("golden {:4} cases with the same bits, {} drifted, {} failed",
                  counts[golden::Agreement::same],
                  counts[golden::Agreement::drifted] + counts[golden::Agreement::near_bound],
                  counts[golden::Agreement::failed]);
  if (counts[golden::Agreement::no_goldens] > 0) {
    text += fmt::format("; {} on platforms without goldens", counts[golden::Agreement::no_goldens]);
  }
  if (near.empty()) return text + "\n";
  return text + "\n" + style.paint("warning", "1;33") + ": goldens near a bound\n" + near;
}

}  // namespace

std::string MissingDeclaration::text() const {
  return fmt::format("{} of {} failed cases of {} are right under {}: declare {}", right, failed,
                     op, declaration.text(), declaration.declaration());
}

std::vector<MissingDeclaration> missing_declarations(const std::vector<Finished>& all,
                                                     std::string_view platform) {
  std::map<std::string, int> failed;
  std::vector<MissingDeclaration> counts;
  for (const Finished& f : all) {
    if (f.result.outcome != Outcome::failed) continue;
    if (!platform.empty() && f.result.platform != platform) continue;
    ++failed[f.op];
    for (const cases::Alternative& one : f.result.right_under) {
      const auto is_same = [&](const MissingDeclaration& known) {
        return known.op == f.op && known.declaration == one;
      };
      auto found = std::find_if(counts.begin(), counts.end(), is_same);
      if (found == counts.end()) found = counts.insert(found, {f.op, one});
      ++found->right;
    }
  }
  std::vector<MissingDeclaration> best;
  for (MissingDeclaration& one : counts) {
    one.failed = failed[one.op];
    const auto of_op = [&](const MissingDeclaration& known) { return known.op == one.op; };
    const auto known = std::find_if(best.begin(), best.end(), of_op);
    const auto worth = [](const MissingDeclaration& m) {
      return std::pair(-m.right, m.declaration.changes());
    };
    if (known == best.end()) {
      best.push_back(one);
    } else if (worth(one) < worth(*known)) {
      *known = one;
    }
  }
  return best;
}

SampledCases sampled_cases(const std::vector<Finished>& all) {
  SampledCases sampled;
  for (const Finished& f : all) {
    bool any = false;
    for (const cases::TensorSummary& tensor : f.result.tensors) {
      // All tensors of a verdict are judged on the same rows.
      if (tensor.sample.rows == 0 || any) continue;
      any = true;
      sampled.sum.rows += tensor.sample.rows;
      sampled.sum.judged += tensor.sample.judged;
      sampled.sum.repeated += tensor.sample.repeated;
    }
    sampled.cases += any;
  }
  return sampled;
}

std::string Style::paint(std::string_view text, std::string_view code) const {
  return color ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

Style style_of(int file_descriptor) { return {process::has_color(file_descriptor)}; }

std::string failure_text(const Finished& finished, const Style& style) {
  constexpr std::size_t kMostLines = 12;
  const cases::CaseResult& result = finished.result;
  if (result.outcome != Outcome::failed && result.outcome != Outcome::untrusted) return "";
  std::string text = headline(finished, style);
  if (result.outcome == Outcome::untrusted) text += "      " + result.reason + "\n";
  if (!result.failures.empty()) {
    const cases::Failure& first = result.failures.front();
    const std::size_t shown = std::min(first.lines.size(), kMostLines);
    for (std::size_t i = 0; i < shown; ++i) text += "      " + first.lines[i] + "\n";
    if (shown < first.lines.size()) {
      text +=
          fmt::format("      ... and {} more lines, all in the JSON\n", first.lines.size() - shown);
    }
    text += "      at " + first.context + "\n";
    const std::string diagnosis = diagnosis_line(result);
    if (!diagnosis.empty() && diagnosis != cases::kNoFault) text += "      " + diagnosis + "\n";
    for (const std::string& line : finished.contrast) text += "      " + line + "\n";
    if (!result.right_under.empty()) text += "      " + right_if(result.right_under) + "\n";
    if (!result.passes_under.empty()) text += "      " + passes_if(result.passes_under) + "\n";
    if (result.failures.size() > 1) {
      text += fmt::format("      {} more steps failed, first: {}\n", result.failures.size() - 1,
                          result.failures[1].context);
    }
  }
  if (!finished.dump.empty()) text += "      tensors: " + finished.dump + "\n";
  if (!finished.dump_trouble.empty()) text += "      no tensors: " + finished.dump_trouble + "\n";
  return text + "      reproduce: " + finished.reproduce + "\n";
}

std::string summary_text(const std::vector<Finished>& all, double seconds, const Style& style) {
  std::string text = "\n";
  const int failed = count(all, Outcome::failed), untrusted = count(all, Outcome::untrusted);
  text += fmt::format("{} passed", style.paint(fmt::to_string(count(all, Outcome::passed)), "32"));
  text += fmt::format(", {} failed", failed ? style.paint(fmt::to_string(failed), "1;31") : "0");
  text += fmt::format(", {} untrusted",
                      untrusted ? style.paint(fmt::to_string(untrusted), "1;33") : "0");
  text += fmt::format(", {} skipped, {} known bugs; {} cases in {:.1f} s\n",
                      count(all, Outcome::skipped), count(all, Outcome::known_bug), all.size(),
                      seconds);
  if (proves_nothing(all)) {
    text += "only trivial cases passed, and these could not have failed (plumb show names them)\n";
  }
  return text + declarations_text(all) + skip_reasons(all) + noted_text(all) + sampled_text(all) +
         golden_text(all, style) + slowest(all) + phase_shares(all);
}

std::string text_of(const RunOrigin& origin, std::string_view name) {
  const auto found = std::ranges::find(origin, name, &RunOrigin::value_type::first);
  return found == origin.end() ? "" : found->second;
}

std::string text_of(const Interruption& interruption, std::size_t done) {
  return fmt::format("{}: {} of {} cases done", interruption.why, done, interruption.cases);
}

bool proves_nothing(const std::vector<Finished>& all) {
  const auto passed_by_intent = std::ranges::count_if(all, [](const Finished& one) {
    return one.trivial && one.result.outcome == Outcome::passed;
  });
  return passed_by_intent > 0 && passed_by_intent == count(all, Outcome::passed);
}

int exit_code(const std::vector<Finished>& all) {
  if (count(all, Outcome::failed) + count(all, Outcome::untrusted) > 0) return 1;
  return count(all, Outcome::passed) + count(all, Outcome::known_bug) > 0 ? 0 : 2;
}

}  // namespace plumb::tools
