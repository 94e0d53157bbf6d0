// SPDX-License-Identifier: Apache-2.0
#include "reference/router/scored_choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

using Ids = std::vector<std::int32_t>;

// The `count` best of `ids` by exact score, with ties as in Candidates::best().
Ids best_of(const Candidates& candidates, std::int64_t row, Ids ids, std::int64_t count,
            const Ids& taken) {
  const double* score = candidates.score.value.data() + row * candidates.score.columns;
  const auto place_of = [&](std::int32_t id) {
    return candidates.free_ties ? std::find(taken.begin(), taken.end(), id) : taken.end();
  };
  const auto in_front = [&](std::int32_t a, std::int32_t b) {
    if (score[a] != score[b]) return score[a] > score[b];
    const auto place_of_a = place_of(a), place_of_b = place_of(b);
    return place_of_a != place_of_b ? place_of_a < place_of_b : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), in_front);
  ids.resize(static_cast<std::size_t>(count));
  return ids;
}

Ids all_ids(std::int64_t count) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace

void Candidates::resize(std::int64_t rows, std::int64_t count) {
  score.resize(rows, count);
  score.output = Format::f32;
  identity.assign(static_cast<std::size_t>(rows * count), 0);
}

void Candidates::set_rows(std::int64_t row, const Tracked& scores) {
  const std::vector<double> sigmas = scores.node()->sigmas();
  for (std::size_t i = 0; i < sigmas.size(); ++i) {
    const auto at = static_cast<std::size_t>(row * score.columns) + i;
    score.value[at] = scores.centres()[i];
    score.sigma[at] = sigmas[i];
    score.worst[at] = scores.node()->most(i);
  }
}

bool Candidates::certainly_equal(std::int64_t row, std::int64_t a, std::int64_t b) const {
  const std::int64_t i = row * score.columns + a, j = row * score.columns + b;
  if (identity[i] == identity[j]) return true;
  const bool exact = score.worst[i] == 0 && score.worst[j] == 0 && std::isfinite(score.value[i]);
  return exact && score.value[i] == score.value[j];
}

bool Candidates::certainly_before(std::int64_t row, std::int64_t a, std::int64_t b) const {
  if (certainly_equal(row, a, b)) return !free_ties && a < b;
  const std::int64_t i = row * score.columns + a, j = row * score.columns + b;
  return score.value[i] - score.arithmetic(i) > score.value[j] + score.arithmetic(j);
}

double Candidates::lead(std::int64_t row, std::int64_t a, std::int64_t b) const {
  return score.value[row * score.columns + b] - score.value[row * score.columns + a];
}

double Candidates::error_of_lead(std::int64_t row, std::int64_t a, std::int64_t b) const {
  return score.arithmetic(row * score.columns + a) + score.arithmetic(row * score.columns + b);
}

// Twice the normal tail, because two scores that round to the same number are ordered by id,
// whichever exact score is larger.
double Candidates::chance_of_flip(std::int64_t row, std::int64_t a, std::int64_t b) const {
  const double gap = std::abs(lead(row, a, b));
  const double sigma =
      std::hypot(score.sigma[row * score.columns + a], score.sigma[row * score.columns + b]);
  if (certainly_equal(row, a, b) || !(sigma > 0) || !std::isfinite(gap)) return 0;
  return std::erfc(gap / sigma / std::sqrt(2.0));
}

Ids Candidates::sorted(std::int64_t row, const Ids& ids) const {
  return best_of(*this, row, ids, std::ssize(ids), ids);
}

Ids Candidates::best(std::int64_t row, std::int64_t count, const Ids& taken) const {
  return best_of(*this, row, all_ids(score.columns), count, taken);
}

Ids ScoredChoices::exact(std::int64_t row, const Ids& taken) const {
  if (rule[row] == Rule::none) return Ids(static_cast<std::size_t>(k), -1);
  if (rule[row] == Rule::first_k) return all_ids(k);
  if (groups == 1) return experts.best(row, k, taken);
  const Ids best_groups = group.best(row, kept, groups_of(taken));
  Ids open = all_ids(experts.score.columns);
  std::erase_if(open, [&](std::int32_t expert) {
    return std::find(best_groups.begin(), best_groups.end(), group_of(expert)) == best_groups.end();
  });
  return best_of(experts, row, open, k, taken);
}

Ids ScoredChoices::groups_of(const Ids& ids) const {
  Ids of_each;
  for (const std::int32_t id : ids) of_each.push_back(static_cast<std::int32_t>(group_of(id)));
  return of_each;
}

}  // namespace plumb::reference
