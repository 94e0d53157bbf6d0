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

// Root mean square of the difference, relative to that of the right results.
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

class Search {
 public:
  Search(const Ops& ops, const OpsQuestions& ask) : ops_(ops), ask_(ask) {}

  OpsReport run() {
    const OpsAnswer broken = watch({}, "is anything found at all");
    if (broken.clean()) return {OpsReport::Conclusion::passes, {}, {}, {}, ""};
    List found = follow_findings(broken);
    if (!watch(with({}, found), "").clean()) {
      const OpsAnswer left = watch(ops_, "is it an op at all: with every op exchanged");
      if (!left.clean()) return not_an_op(broken, left);
      note("every op exchanged, nothing is found: the first findings do not settle which");
      found = halves({}, false, candidates(found));
    }
    return culprits(minimal(std::move(found)), broken);
  }

 private:
  const OpsAnswer& watch(const Ops& exchanged, const std::string& why) {
    const auto found = answers_.find(exchanged);
    if (found != answers_.end()) return found->second;
    return answers_.emplace(exchanged, ask_.watch(exchanged, why)).first->second;
  }
  void note(const std::string& text) { ask_.note(text); }

  // The op of the first finding, exchanged; and again what is found then, as long as that is
  // another op.
  List follow_findings(const OpsAnswer& broken) {
    List blamed;
    const OpsAnswer* answer = &broken;
    while (!answer->clean() && answer->died.empty()) {
      const std::string& op = answer->findings.front().op;
      if (!ops_.contains(op) || std::count(blamed.begin(), blamed.end(), op) > 0) break;
      note(fmt::format("{} is blamed first: {}", op, first_text(*answer)));
      blamed.push_back(op);
      answer = &watch(with({}, blamed), "what is found without " + op);
      if (revealed_.contains(op) || answer->clean()) continue;
      for (const Finding& finding : answer->findings) {
        const bool anew = first_of(broken, finding.op) == nullptr;
        if (anew && ops_.contains(finding.op)) revealed_.try_emplace(finding.op, op);
      }
    }
    return blamed;
  }

  // Those that were blamed first, so that halves part from the others.
  List candidates(const List& blamed) const {
    List all = blamed;
    std::copy_if(ops_.begin(), ops_.end(), std::back_inserter(all), [&](const std::string& op) {
      return std::count(blamed.begin(), blamed.end(), op) == 0;
    });
    return all;
  }

  // A set among `among` that, exchanged beside `given`, leaves nothing to find, and no op of which
  // can be spared: halves of what is left, the other half exchanged meanwhile (QuickXplain).
  List halves(const Ops& given, bool changed, const List& among) {
    if (changed && watch(given, fmt::format("{} exchanged", joined(given))).clean()) return {};
    if (among.size() == 1) return among;
    const auto middle = among.begin() + std::ssize(among) / 2;
    const List front(among.begin(), middle), back(middle, among.end());
    const List of_back = halves(with(given, front), true, back);
    List both = halves(with(given, of_back), !of_back.empty(), front);
    both.insert(both.end(), of_back.begin(), of_back.end());
    return both;
  }

  // Each left in alone has to fail again. Who does not was blamed for another's fault.
  List minimal(List found) {
    for (std::size_t i = 0; found.size() > 1 && i < found.size();) {
      const std::string op = found[i];
      const OpsAnswer& left_in =
          watch(without(with({}, found), op), fmt::format("is {} to blame: left in alone", op));
      if (!left_in.clean()) {
        ++i;
        continue;
      }
      note(fmt::format("{} is not to blame: left in, with {} exchanged, nothing is found", op,
                       joined(without(with({}, found), op))));
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return found;
  }

  OpsReport culprits(const List& found, const OpsAnswer& broken) {
    OpsReport report{OpsReport::Conclusion::ops, {}, {}, {}, ""};
    const Ops all = with({}, found);
    if (!watch(all, "are they all").clean()) {
      report.kind = OpsReport::Conclusion::undecided;
      report.why = "exchanging ops one by one does not make the steps right, all of them does";
      return report;
    }
    for (const std::string& op : found) {
      report.culprits.push_back(
          culprit(op, watch(without(all, op), op + " left in alone"), broken));
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
      note(fmt::format("{} shows only once {} is exchanged", op, one.hidden_by));
    }
    return one;
  }

  // Every pair, the other culprits exchanged.
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

  // What is found with every op exchanged is no op's. An op that adds findings in front of it when
  // it alone is left in is one to blame beside it; behind it, ops may have been given anything.
  OpsReport not_an_op(const OpsAnswer& broken, const OpsAnswer& left) {
    OpsReport report{OpsReport::Conclusion::not_an_op, {}, {}, {}, ""};
    note("no op: with every op exchanged " + first_text(left));
    if (left.findings.empty()) {
      report.left = Finding{.detector = cases::Detector::error, .text = left.died};
      return report;
    }
    report.left = left.findings.front();
    for (const std::string& op : named(broken)) {
      const OpsAnswer& alone =
          watch(without(ops_, op), fmt::format("is {} to blame beside it", op));
      const Finding* more = first_of(alone, op);
      if (more == nullptr || has(left, *more) || !is_before(*more, *report.left)) continue;
      report.culprits.push_back(culprit(op, alone, broken));
    }
    return report;
  }

  // By the reference: what other detectors say of an op follows from what it was given.
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
  std::map<std::string, std::string> revealed_;  // op, by whose exchange
};

}  // namespace

OpsReport search_ops(const Ops& ops, const OpsQuestions& ask) { return Search(ops, ask).run(); }

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
