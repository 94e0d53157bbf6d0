// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/judge_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "reference/codes.h"

namespace plumb::cases {

namespace {

using reference::Candidates;
using reference::ScoredChoices;
using Ids = std::vector<std::int32_t>;

// Verdict on one row.
struct RowVerdict {
  std::string wrong;       // why the row is wrong; empty: it is right
  std::int64_t place = 0;  // first wrong place in the row
  std::int64_t wrong_places = 0;
  std::int64_t flips = 0;  // choices that differ from the exact ones in a right row
  double expected_flips = 0;
  double margin = 0;  // largest score difference of a flip, divided by its error limit
  std::string flip;   // text for the first flip
};

// Text for an expert: "201 (group 6)", or "201" if there are no groups.
std::string name_of(const ScoredChoices& choices, std::int64_t expert) {
  if (choices.groups == 1) return fmt::format("{}", expert);
  return fmt::format("{} (group {})", expert, choices.group_of(expert));
}

// Explains why expert a must stand behind b: "its score is smaller by 0.03, errors reach 1e-07".
std::string compare(const Candidates& candidates, std::int64_t row, std::int64_t a,
                    std::int64_t b) {
  if (candidates.certainly_equal(row, a, b)) return "equal scores, the smaller id comes first";
  return fmt::format("its score is smaller by {:.3g}, errors reach {:.2g}",
                     candidates.lead(row, a, b), candidates.error_of_lead(row, a, b));
}

void fail(RowVerdict& verdict, std::int64_t place, std::string why) {
  ++verdict.wrong_places;
  if (!verdict.wrong.empty()) return;
  verdict.place = place;
  verdict.wrong = std::move(why);
}

// Judges a row whose ids are fixed and need no scores: all -1, or 0, 1, ...
void judge_fixed(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                 RowVerdict& verdict) {
  const Ids right = choices.exact(row);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == right[i]) continue;
    fail(verdict, static_cast<std::int64_t>(i), fmt::format("{}, expected {}", ids[i], right[i]));
  }
}

bool judge_range(const ScoredChoices& choices, bool repeated, const Ids& ids, RowVerdict& verdict) {
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (ids[i] < 0 || ids[i] >= choices.experts.score.columns) {
      fail(verdict, place, fmt::format("{}, which is not an expert", ids[i]));
    } else if (!seen.insert(ids[i]).second && !repeated) {
      fail(verdict, place, fmt::format("{} a second time", ids[i]));
    }
  }
  return verdict.wrong.empty();
}

// Groups that must be open (their experts may be chosen), given that `ids` were chosen: the groups
// of `ids`, groups whose score is certainly larger than a chosen one's, and groups that are among
// the best under all allowed errors.
std::set<std::int64_t> open_groups(const ScoredChoices& choices, std::int64_t row, const Ids& ids) {
  std::set<std::int64_t> open;
  for (const std::int32_t id : ids) open.insert(choices.group_of(id));
  if (choices.groups == 1) return open;
  const std::set<std::int64_t> chosen = open;
  for (std::int64_t g = 0; g < choices.groups; ++g) {
    std::int64_t rivals = 0;
    for (std::int64_t h = 0; h < choices.groups; ++h) {
      if (h == g) continue;
      rivals += !choices.group.certainly_before(row, g, h);
      if (chosen.count(h) && choices.group.certainly_before(row, g, h)) open.insert(g);
    }
    if (rivals < choices.kept) open.insert(g);
  }
  return open;
}

// Fails if more groups than allowed must be open. Names a chosen group and the better group that it
// displaces.
void judge_groups(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                  const std::set<std::int64_t>& open, RowVerdict& verdict) {
  if (std::ssize(open) <= choices.kept) return;
  const Ids best = choices.group.best(row, choices.kept, choices.groups_of(ids));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t group = choices.group_of(ids[i]);
    if (std::find(best.begin(), best.end(), group) != best.end()) continue;
    fail(verdict, static_cast<std::int64_t>(i),
         fmt::format("{}, whose group is not among the best {}; instead of group {}: {}",
                     name_of(choices, ids[i]), choices.kept, best.back(),
                     compare(choices.group, row, group, best.back())));
  }
}

// The best expert that certainly belongs in front of ids[place], but stands behind it or was left
// out; -1 if there is none.
std::int64_t overtaken(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                       std::size_t place, const std::set<std::int64_t>& open) {
  std::int64_t found = -1;
  const double* score = choices.experts.score.value.data() + row * choices.experts.score.columns;
  for (std::int64_t e = 0; e < choices.experts.score.columns; ++e) {
    if (e == ids[place] || !choices.experts.certainly_before(row, e, ids[place])) continue;
    if (!open.count(choices.group_of(e))) continue;
    const auto in_front = ids.begin() + static_cast<std::ptrdiff_t>(place);
    if (std::find(ids.begin(), in_front, e) != in_front) continue;
    if (found < 0 || score[e] > score[found]) found = e;
  }
  return found;
}

bool contains(const Ids& ids, std::int64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Ids that belong in the row but are missing, best score first.
Ids left_out(const ScoredChoices& choices, std::int64_t row, const Ids& ids) {
  Ids right = choices.exact(row, ids);
  std::erase_if(right, [&](std::int32_t id) { return contains(ids, id); });
  return right;
}

// Fails each id that stands in front of, or in place of, an expert that is certainly better. If the
// order is free, `ids` are sorted by score, and missing experts are charged to the worst chosen
// ones at the end.
void judge_experts(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                   const std::set<std::int64_t>& open, RowVerdict& verdict) {
  std::size_t i = choices.free_order ? ids.size() - left_out(choices, row, ids).size() : 0;
  for (; i < ids.size(); ++i) {
    const std::int64_t better = overtaken(choices, row, ids, i, open);
    if (better < 0) continue;
    const bool later = contains(ids, better);
    fail(verdict, static_cast<std::int64_t>(i),
         fmt::format("{} {} {}: {}", name_of(choices, ids[i]), later ? "in front of" : "instead of",
                     name_of(choices, better), compare(choices.experts, row, ids[i], better)));
  }
}

void count_flip(const ScoredChoices& choices, const Candidates& candidates, std::int64_t row,
                std::int64_t a, std::int64_t b, std::string_view noun, RowVerdict& verdict) {
  ++verdict.flips;
  const double error = candidates.error_of_lead(row, a, b);
  if (error > 0) verdict.margin = std::max(verdict.margin, candidates.lead(row, a, b) / error);
  if (!verdict.flip.empty()) return;
  const bool experts = &candidates == &choices.experts;
  verdict.flip = fmt::format(
      "{} {} before {}: {}", noun, experts ? name_of(choices, a) : fmt::format("{}", a),
      experts ? name_of(choices, b) : fmt::format("{}", b), compare(candidates, row, a, b));
}

// Counts one flip if a chosen id's group is not among the best by the exact scores. Returns true
// then.
bool count_group_flips(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                       RowVerdict& verdict) {
  if (choices.kept == choices.groups) return false;
  const Ids best = choices.group.best(row, choices.kept + 1, choices.groups_of(ids));
  verdict.expected_flips +=
      choices.group.chance_of_flip(row, best[choices.kept - 1], best[choices.kept]);
  const std::int64_t before = verdict.flips;
  for (const std::int32_t id : ids) {
    const std::int64_t group = choices.group_of(id);
    if (std::find(best.begin(), best.end() - 1, group) != best.end() - 1) continue;
    if (verdict.flips > before) break;
    count_flip(choices, choices.group, row, group, best[choices.kept - 1], "group", verdict);
  }
  return verdict.flips > before;
}

// Counts pairs of experts that are neighbours in the exact order and stand the other way round
// (unless the order is free), and chosen experts that are not in the exact choice.
void count_expert_flips(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                        RowVerdict& verdict) {
  const Ids order = choices.exact(row, ids);
  const auto place_of = [&](std::int32_t id) { return std::find(ids.begin(), ids.end(), id); };
  for (std::size_t i = 0; !choices.free_order && i + 1 < order.size(); ++i) {
    verdict.expected_flips += choices.experts.chance_of_flip(row, order[i], order[i + 1]);
    if (place_of(order[i + 1]) < place_of(order[i])) {
      count_flip(choices, choices.experts, row, order[i + 1], order[i], "expert", verdict);
    }
  }
  const std::int32_t last = order.back();
  for (std::int64_t e = 0; e < choices.experts.score.columns; ++e) {
    if (std::find(order.begin(), order.end(), e) != order.end()) continue;
    verdict.expected_flips += choices.experts.chance_of_flip(row, last, e);
    if (place_of(static_cast<std::int32_t>(e)) == ids.end()) continue;
    count_flip(choices, choices.experts, row, e, last, "expert", verdict);
  }
}

void judge_chosen(const ScoredChoices& choices, std::int64_t row, const Ids& ids,
                  RowVerdict& verdict) {
  const std::set<std::int64_t> open = open_groups(choices, row, ids);
  judge_groups(choices, row, ids, open, verdict);
  if (verdict.wrong.empty()) judge_experts(choices, row, ids, open, verdict);
  if (!verdict.wrong.empty()) return;
  if (!count_group_flips(choices, row, ids, verdict)) {
    count_expert_flips(choices, row, ids, verdict);
  }
}

RowVerdict judge_row(const ScoredChoices& choices, std::int64_t row, const Ids& ids) {
  RowVerdict verdict;
  const ScoredChoices::Rule rule = choices.rule[row];
  if (rule == ScoredChoices::Rule::first_k || rule == ScoredChoices::Rule::none) {
    judge_fixed(choices, row, ids, verdict);
    return verdict;
  }
  const bool any = rule == ScoredChoices::Rule::any_expert;
  if (!judge_range(choices, any, ids, verdict) || any) return verdict;
  const Ids judged = choices.free_order ? choices.experts.sorted(row, ids) : ids;
  judge_chosen(choices, row, judged, verdict);
  verdict.place = std::find(ids.begin(), ids.end(), judged[verdict.place]) - ids.begin();
  return verdict;
}

// The id that belongs at a wrong place of a row.
std::int32_t right_id(const ScoredChoices& choices, const Mismatch& wrong, const Ids& ids) {
  const Ids missing = left_out(choices, wrong.row, ids);
  const bool free = choices.free_order && !missing.empty();
  return free ? missing.front() : choices.exact(wrong.row, ids)[wrong.column];
}

// Up to three adjacent flips can have one common cause.
std::int64_t most_flips(double expected) { return reference::most_honest_flips(expected, 3); }

void count_row(const RowVerdict& verdict, std::int64_t row, const HostTensor& ids,
               TensorReport& report) {
  report.wrong_elements += verdict.wrong_places;
  report.margin = std::max(report.margin, verdict.margin);
  report.flips += verdict.flips;
  if (report.flip.empty() && verdict.flips > 0) {
    report.flip = fmt::format("row {}: {}", ids.original_row(row), verdict.flip);
  }
  if (verdict.wrong.empty()) return;
  if (report.wrong_rows.empty()) {
    const double got = ids.value(row, verdict.place);
    report.worst = Mismatch{row, verdict.place,       ids.coordinates(row, verdict.place), 0, got,
                            0,   reference::kInfinity};
  }
  report.wrong_rows.push_back(row);
  report.margin = reference::kInfinity;
}

}  // namespace

TensorReport judge_choices(const HostTensor& ids, const ScoredChoices& choices) {
  if (ids.rows() != choices.rows() || ids.columns() != choices.k) {
    throw std::invalid_argument(fmt::format("{}: {} x {} stored, {} x {} chosen", ids.spec().name,
                                            ids.rows(), ids.columns(), choices.rows(), choices.k));
  }
  TensorReport report;
  report.tensor = ids.spec().name;
  report.rows_total = ids.original_rows();
  report.rows_compared = ids.rows();
  report.elements_compared = ids.elements();
  double expected = 0;
  std::int64_t zeros = 0;
  std::string first;
  for (std::int64_t row = 0; row < ids.rows(); ++row) {
    const auto* stored = ids.row<std::int32_t>(row);
    zeros += std::count(stored, stored + choices.k, 0);
    const RowVerdict verdict = judge_row(choices, row, Ids(stored, stored + choices.k));
    count_row(verdict, row, ids, report);
    expected += verdict.expected_flips;
    if (!verdict.wrong.empty() && first.empty()) first = verdict.wrong;
  }
  const auto all = static_cast<double>(std::max<std::int64_t>(report.elements_compared, 1));
  report.zero_share = static_cast<double>(zeros) / all;
  report.observability = report.elements_compared == 0 ? 0 : 1 - report.zero_share;
  if (!report.wrong_rows.empty()) {
    const auto* stored = ids.row<std::int32_t>(report.worst->row);
    report.worst->expected = right_id(choices, *report.worst, Ids(stored, stored + choices.k));
    report.failures.push_back(
        fmt::format("{}: {} wrong; {} has {}", report.tensor,
                    rows_of(original_rows(ids, report.wrong_rows), report.rows_total),
                    report.worst->coordinates, first));
  }
  if (!choices.experts.score.structured && report.flips > most_flips(expected)) {
    report.failures.push_back(fmt::format(
        "{}: {} choices differ from the exact ones, each within the errors of its scores; right "
        "arithmetic has {:.2g} on average, at most {}; {}",
        report.tensor, report.flips, expected, most_flips(expected), report.flip));
  }
  report.wrong_rows = original_rows(ids, std::move(report.wrong_rows));
  if (report.worst) report.worst->row = ids.original_row(report.worst->row);
  return report;
}

}  // namespace plumb::cases
