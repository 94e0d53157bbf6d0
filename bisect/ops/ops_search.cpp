// SPDX-License-Identifier: Apache-2.0
#include "bisect/ops/ops_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace plumb::bisect {

namespace {

using cases::Finding;
using List = std::vector<std::string>;

Ops with(Ops ops, const std::string& op) {
  ops.insert(op);
  return ops;
}
Ops with(Ops ops, const List& more) {
  ops.insert(more.begin(), more.end());
  return ops;
}
Ops without(Ops ops, const std::string& op) {
  ops.erase(op);
  return ops;
}

const Finding* first_of(const OpsAnswer& answer, const std::string& op) {
  const auto found = std::find_if(answer.findings.begin(), answer.findings.end(),
                                  [&](const Finding& finding) { return finding.op == op; });
  return found == answer.findings.end() ? nullptr : &*found;
}

bool is_before(const Finding& one, const Finding& other) {
  return std::pair(one.step, one.position) < std::pair(other.step, other.position);
}

bool has(const OpsAnswer& answer, const Finding& wanted) {
  return std::any_of(answer.findings.begin(), answer.findings.end(), [&](const Finding& one) {
    return one.detector == wanted.detector && one.op == wanted.op && one.call == wanted.call;
  });
}

std::string first_text(const OpsAnswer& answer) {
  if (!answer.died.empty()) return answer.died;
  return answer.findings.empty() ? "nothing is found" : text_of(answer.findings.front());
}

// Relative error: RMS of the difference divided by the RMS of the right results.
double error_of(const std::vector<float>& got, const std::vector<float>& right) {
  if (got.size() != right.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = double{got[i]} - double{right[i]};
    difference += d * d;
    size += double{right[i]} * double{right[i]};
  }
  if (std::isnan(difference)) return INFINITY;
  return size > 0 ? std::sqrt(difference / size) : difference > 0 ? INFINITY : 0;
}

// Nothing is known about steps that could not be judged.
struct Skipped {
  std::string why;
};

class Search {
 public:
  Search(const Ops& ops, const OpsQuestions& ask) : ops_(ops), ask_(ask) {}

  OpsReport run() {
    const OpsAnswer broken = watch({}, "is there a finding");
    if (broken.clean()) return {OpsReport::Conclusion::passes, {}, {}, {}, ""};
    List found = follow_findings(broken);
    if (!watch(with({}, found), "").clean()) {
      const OpsAnswer left = watch(ops_, "is the cause an op: with every op replaced");
      if (!left.clean()) return not_an_op(broken, left);
      note("with every op replaced nothing is found: the first findings do not name the op");
      found = halves({}, false, candidates(found));
    }
    return culprits(minimal(std::move(found)), broken);
  }

 private:
  const OpsAnswer& watch(const Ops& exchanged, const std::string& why) {
    const auto found = answers_.find(exchanged);
    if (found != answers_.end()) return found->second;
    OpsAnswer answer = ask_.watch(exchanged, why);
    if (!answer.skipped.empty()) {
      throw Skipped{fmt::format("with {} replaced: {}", joined(exchanged), answer.skipped)};
    }
    return answers_.emplace(exchanged, std::move(answer)).first->second;
  }
  void note(const std::string& text) { ask_.note(text); }

  // Replaces the op of the first finding by the reference, runs again, and repeats this for the
  // next first finding, until an op would be blamed twice.
  List follow_findings(const OpsAnswer& broken) {
    List blamed;
    const OpsAnswer* answer = &broken;
    while (!answer->clean() && answer->died.empty()) {
      const std::string& op = answer->findings.front().op;
      if (!ops_.contains(op) || std::count(blamed.begin(), blamed.end(), op) > 0) break;
      note(fmt::format("{} is blamed first: {}", op, first_text(*answer)));
      blamed.push_back(op);
      answer = &watch(with({}, blamed), "what is found with " + op + " replaced");
      if (revealed_.contains(op) || answer->clean()) continue;
      for (const Finding& finding : answer->findings) {
        const bool anew = first_of(broken, finding.op) == nullptr;
        if (anew && ops_.contains(finding.op)) revealed_.try_emplace(finding.op, op);
      }
    }
    return blamed;
  }

  // All ops, those that were blamed first at the front, so that halving separates them from the
  // rest.
  List candidates(const List& blamed) const {
    List all = blamed;
    std::copy_if(ops_.begin(), ops_.end(), std::back_inserter(all), [&](const std::string& op) {
      return std::count(blamed.begin(), blamed.end(), op) == 0;
    });
    return all;
  }

  // A minimal set of ops in `among` that must be replaced in addition to `given` until nothing is
  // found. Halves the list recursively, with the other half replaced (QuickXplain).
  List halves(const Ops& given, bool changed, const List& among) {
    if (changed && watch(given, fmt::format("{} replaced", joined(given))).clean()) return {};
    if (among.size() == 1) return among;
    const auto middle = among.begin() + std::ssize(among) / 2;
    const List front(among.begin(), middle), back(middle, among.end());
    const List of_back = halves(with(given, front), true, back);
    List both = halves(with(given, of_back), !of_back.empty(), front);
    both.insert(both.end(), of_back.begin(), of_back.end());
    return both;
  }

  // Removes ops that are not needed: if an op runs unreplaced, with the others replaced, and
  // nothing is found, it was blamed for another op's fault.
  List minimal(List found) {
    for (std::size_t i = 0; found.size() > 1 && i < found.size();) {
      const std::string op = found[i];
      const OpsAnswer& left_in =
          watch(without(with({}, found), op),
                fmt::format("is {} to blame: only the other culprits replaced", op));
      if (!left_in.clean()) {
        ++i;
        continue;
      }
      note(fmt::format("{} is not to blame: with {} replaced nothing is found", op,
                       joined(without(with({}, found), op))));
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return found;
  }

  OpsReport culprits(const List& found, const OpsAnswer& broken) {
    OpsReport report{OpsReport::Conclusion::ops, {}, {}, {}, ""};
    const Ops all = with({}, found);
    if (!watch(all, "are these all culprits").clean()) {
      report.kind = OpsReport::Conclusion::undecided;
      report.why = "findings remain with the culprits replaced, but not with every op replaced";
      return report;
    }
    for (const std::string& op : found) {
      report.culprits.push_back(culprit(op, watch(without(all, op), op + " not replaced"), broken));
    }
    compare_results(all, report);
    return report;
  }

  Culprit culprit(const std::string& op, const OpsAnswer& left_in, const OpsAnswer& broken) {
    Culprit one{.op = op};
    const Finding* shown = first_of(left_in, op);
    if (shown == nullptr && !left_in.findings.empty()) shown = &left_in.findings.front();
    if (shown != nullptr) {
      one.call = shown->call;
      one.text = shown->text;
      one.step = shown->step;
    } else {
      one.text = left_in.died;
    }
    const auto revealed = revealed_.find(op);
    if (revealed != revealed_.end() && first_of(broken, op) == nullptr) {
      one.hidden_by = revealed->second;
      note(fmt::format("{} shows only after {} is replaced", op, one.hidden_by));
    }
    return one;
  }

  // Compares results for every pair of culprits, with all other culprits replaced.
  void compare_results(const Ops& all, OpsReport& report) {
    if (all.size() < 2) return;
    const std::vector<float> right = ask_.results(all);
    for (auto one = all.begin(); one != all.end(); ++one) {
      for (auto other = std::next(one); other != all.end(); ++other) {
        const Ops rest = without(without(all, *one), *other);
        Cancelling pair{*one, *other};
        pair.both = error_of(ask_.results(rest), right);
        pair.one_alone = error_of(ask_.results(with(rest, *other)), right);
        pair.other_alone = error_of(ask_.results(with(rest, *one)), right);
        if (!(pair.both < std::min(pair.one_alone, pair.other_alone) / 2)) continue;
        report.cancelling.push_back(pair);
        note(
            fmt::format("{} and {} cancel: the results are off by {:.2g} with both, {:.2g} and "
                        "{:.2g} with one",
                        *one, *other, pair.both, pair.one_alone, pair.other_alone));
      }
    }
  }

  // Findings that remain with every op replaced do not come from an op. An op can be a culprit in
  // addition, if it adds a finding before the first remaining one when it alone is not replaced.
  // Later ops may have received wrong inputs, so findings behind it are no evidence.
  OpsReport not_an_op(const OpsAnswer& broken, const OpsAnswer& left) {
    OpsReport report{OpsReport::Conclusion::not_an_op, {}, {}, {}, ""};
    note("not an op: with every op replaced " + first_text(left));
    if (left.findings.empty()) {
      report.left = Finding{.detector = cases::Detector::error, .text = left.died};
      return report;
    }
    report.left = left.findings.front();
    for (const std::string& op : named(broken)) {
      const OpsAnswer& alone = watch(without(ops_, op), fmt::format("is {} to blame too", op));
      const Finding* more = first_of(alone, op);
      if (more == nullptr || has(left, *more) || !is_before(*more, *report.left)) continue;
      report.culprits.push_back(culprit(op, alone, broken));
    }
    return report;
  }

  // Ops that the detectors `reference` and `error` name. Other detectors' findings depend on the
  // inputs that the op received.
  Ops named(const OpsAnswer& answer) const {
    Ops all;
    for (const Finding& finding : answer.findings) {
      const bool judged = finding.detector == cases::Detector::reference ||
                          finding.detector == cases::Detector::error;
      if (judged && ops_.contains(finding.op)) all.insert(finding.op);
    }
    return all;
  }

  const Ops& ops_;
  const OpsQuestions& ask_;
  std::map<Ops, OpsAnswer> answers_;
  std::map<std::string, std::string> revealed_;  // op -> the op whose replacement revealed it
};

}  // namespace

OpsReport search_ops(const Ops& ops, const OpsQuestions& ask) {
  try {
    return Search(ops, ask).run();
  } catch (const Skipped& skipped) {
    return {OpsReport::Conclusion::undecided, {}, {}, {}, skipped.why};
  }
}

std::string text_of(const Finding& finding) {
  const std::string op = finding.op.empty() ? "" : ", " + finding.op;
  const std::string call =
      finding.call.empty() || finding.call == finding.op ? "" : " (" + finding.call + ")";
  return fmt::format("step {}{}{}, {}: {}", finding.step, op, call, name_of(finding.detector),
                     finding.text);
}

std::string joined(const Ops& ops) {
  return ops.empty() ? "no op" : fmt::format("{}", fmt::join(ops, ", "));
}

}  // namespace plumb::bisect
