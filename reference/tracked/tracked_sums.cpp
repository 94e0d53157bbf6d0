// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/rounding.h"
#include "reference/rounding_bias.h"
#include "reference/tracked/four_elements.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Iterates over the lines of elements along a dimension; reductions give one number per line.
class Lines {
 public:
  Lines(const TrackedNode& node, std::size_t dimension)
      : split_(split_at(node.sizes, dimension)), dimension_(dimension) {}

  std::size_t count() const { return static_cast<std::size_t>(split_.outer * split_.inner); }
  std::int64_t length() const { return split_.size; }
  std::size_t dimension() const { return dimension_; }

  // Calls visit(i) for each element of line `line`, in order.
  void for_each(std::size_t line, const auto& visit) const {
    const auto inner = static_cast<std::size_t>(split_.inner);
    const auto size = static_cast<std::size_t>(split_.size);
    std::size_t at = line / inner * inner * size + line % inner;
    for (std::size_t k = 0; k < size; ++k, at += inner) visit(at);
  }

  LineSums sums(std::size_t line, const std::vector<double>& of) const {
    if (split_.inner == 1) {
      const auto size = static_cast<std::size_t>(split_.size);
      return line_sums(of.data() + line * size, size);
    }
    LineSums sums;
    for_each(line, [&](std::size_t i) {
      sums.sum += of[i];
      sums.magnitudes += std::abs(of[i]);
      sums.squares += square(of[i]);
    });
    return sums;
  }
  double sum(std::size_t line, const std::vector<double>& of) const {
    if (split_.inner == 1) {
      const auto size = static_cast<std::size_t>(split_.size);
      return line_sums(of.data() + line * size, size).sum;
    }
    double total = 0;
    for_each(line, [&](std::size_t i) { total += of[i]; });
    return total;
  }

 private:
  TrackedSplit split_;
  std::size_t dimension_;
};

// Mean of the rounding errors when exact terms of one sign are added. In short chains most partial
// sums are exact and the random part is larger, so the bound does not include the mean.
class BiasOfSums {
 public:
  BiasOfSums(const TrackedNode& terms, const Lines& lines) : terms_(terms), lines_(lines) {
    const auto length = static_cast<double>(lines.length());
    chains_ = std::clamp<double>(terms.numerics->chains, 1, std::max(1.0, length));
    in_bound_ = length > kShortChain * chains_;
  }

  RoundingBias of(std::size_t line, const LineSums& sums) {
    if (std::abs(sums.sum) != sums.magnitudes || !is_exact(line)) return {};
    magnitudes_.clear();
    lines_.for_each(line,
                    [&](std::size_t i) { magnitudes_.push_back(std::abs(terms_.values[i])); });
    const RoundingBias bias =
        rounding_bias(magnitudes_.data(), magnitudes_.size(), chains_, sums.magnitudes / chains_,
                      unit_roundoff(terms_.numerics->accumulator));
    return in_bound_ ? bias : RoundingBias{.of_sums = bias.all()};
  }

 private:
  static constexpr double kShortChain = 64;

  // Other lines may have errors, such as those of numbers past the range of fp32.
  bool is_exact(std::size_t line) const {
    if (terms_.worst.empty() && terms_.centres.empty()) return terms_.sources.empty();
    bool exact = true;
    lines_.for_each(line, [&](std::size_t i) {
      exact &= terms_.most(i) == 0 && terms_.centre(i) == terms_.values[i];
    });
    return exact;
  }

  const TrackedNode& terms_;
  const Lines& lines_;
  double chains_ = 1;
  bool in_bound_ = false;
  std::vector<double> magnitudes_;
};

// Number of terms of a line that are not exactly 0. The addition of 0 does not round.
std::int64_t present_terms(const TrackedNode& terms, const Lines& lines, std::size_t line,
                           const std::vector<double>& centres) {
  std::int64_t zeros = 0, present = 0;
  lines.for_each(line, [&](std::size_t i) { zeros += centres[i] == 0; });
  if (zeros == 0) return lines.length();
  lines.for_each(line, [&](std::size_t i) { present += centres[i] != 0 || terms.most(i) != 0; });
  return present;
}

// Error of the sum of a line with `present` terms that are not 0. Chance spreads them over the
// chains, so the mean square of a chain's length is larger than the square of its mean, by the
// variance. sigma is that of fewer chains, whose length is the root of this mean square. In the
// worst case all terms are in one chain.
SumError error_of_present(std::int64_t present, std::int64_t length, const LineSums& sums,
                          double most, const Numerics& numerics) {
  if (present < 2) return {};
  const double magnitudes = sums.magnitudes + most;
  SumError error = sum_error(length, sums.sum, magnitudes, sums.squares, numerics);
  if (present == length) return error;
  const auto n = static_cast<double>(length), terms = static_cast<double>(present);
  const double chains = std::clamp<double>(numerics.chains, 1, n), mean = terms / chains;
  const double variance = mean * (1 - terms / n) * (n - n / chains) / (n - 1);
  Numerics spread = numerics;
  spread.chains = static_cast<int>(terms / std::sqrt(square(mean) + variance));
  error.sigma = sum_error(present, sums.sum, magnitudes, sums.squares, spread).sigma;
  return error;
}

// A sum past the accumulator's range: infinity in one order of addition, finite in another one. Its
// error is so large that nothing that depends on it has a useful bound.
SumError error_past_range(double magnitudes) {
  constexpr double kAnything = 1e30;
  return {.sigma = kAnything * magnitudes, .worst = kAnything * magnitudes};
}

constexpr std::size_t kMostKeptApart = 16;

// A node with one number per line, and the error arrays that the terms have.
TrackedNode of_lines(const TrackedNode& terms, const Lines& lines, std::size_t dimension) {
  TrackedNode node{terms.sizes, terms.numerics, std::vector<double>(lines.count())};
  node.sizes[dimension] = 1;
  if (!terms.centres.empty()) node.centres.resize(lines.count());
  if (!terms.worst.empty()) node.worst.resize(lines.count());
  if (!terms.systematic.empty()) node.systematic.resize(lines.count());
  return node;
}

// A new source of the sums, for a source that differs between lines.
ErrorSource of_lines(const ErrorSource& source, const Lines& lines, const TrackedSizes& sizes) {
  ErrorSource like{nullptr, 0, source.strides, {}};
  like.strides[lines.dimension()] = 1;
  return new_source_like(like, sizes, std::vector<double>(lines.count()));
}

// Replaces sources that differ from term to term and that elements of other dimensions share. The
// 16 terms with the largest effects keep their sources. The others become random mixes, whose mean
// covariance is that of all of them. Each sum keeps its own variance, times a margin for the
// randomness.
std::vector<ErrorSource> mixed(const ErrorSource& source, const Lines& lines,
                               const TrackedSizes& sizes) {
  constexpr double kMargin = 1.25;
  const auto length = static_cast<std::size_t>(lines.length());
  std::vector<double> weights(length);
  for (std::size_t line = 0; line < lines.count(); ++line) {
    std::size_t term = 0;
    lines.for_each(line, [&](std::size_t i) { weights[term++] += square(source.effect[i]); });
  }
  std::vector<std::size_t> order(length);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t t) { return std::pair(-weights[t], t); });
  const std::size_t apart = std::min(length, kMostKeptApart);
  const std::size_t mixes = length > apart ? kMostKeptApart : 0;
  std::vector<std::size_t> place(length, apart);  // index of each term's part
  for (std::size_t j = 0; j < apart; ++j) place[order[j]] = j;
  std::vector<ErrorSource> parts;
  for (std::size_t j = 0; j < apart + mixes; ++j) {
    parts.push_back(of_lines(source, lines, sizes));
  }
  for (std::size_t line = 0; line < lines.count(); ++line) {
    std::size_t term = 0;
    double rest = 0, of_mixes = 0;
    lines.for_each(line, [&](std::size_t i) {
      const double effect = source.effect[i];
      const std::size_t here = place[term++];
      if (here < apart) {
        parts[here].effect[line] = effect;
        return;
      }
      rest += square(effect);
      for (std::size_t j = 0; j < mixes; ++j) {
        parts[apart + j].effect[line] += sign_by_chance(term, j) * effect;
      }
    });
    for (std::size_t j = 0; j < mixes; ++j) of_mixes += square(parts[apart + j].effect[line]);
    const double all = kMargin * std::sqrt(rest);
    if (of_mixes == 0 && mixes > 0) parts[apart].effect[line] = all;
    for (std::size_t j = 0; j < mixes && of_mixes > 0; ++j) {
      parts[apart + j].effect[line] *= all / std::sqrt(of_mixes);
    }
  }
  return parts;
}

// If `other` uses the same family of sources as `one`, shifted along the summed dimension: the
// shift in terms. nullopt otherwise.
std::optional<std::int64_t> terms_apart(const ErrorSource& one, const ErrorSource& other,
                                        const Lines& lines) {
  if (one.identity != other.identity || one.strides != other.strides) return std::nullopt;
  const std::int64_t stride = one.strides[lines.dimension()];
  if ((one.base - other.base) % stride != 0) return std::nullopt;
  return (one.base - other.base) / stride;
}

// Joins sources that differ from term to term into a new one. Effects of terms that overlapping
// slices have in common are added before they are squared. `alike`: sources of the same family.
ErrorSource of_own(const std::vector<ErrorSource>& alike, const Lines& lines,
                   const TrackedSizes& sizes) {
  ErrorSource total = own_source(sizes, std::vector<double>(lines.count()));
  if (alike.size() == 1) {
    for (std::size_t line = 0; line < total.effect.size(); ++line) {
      total.effect[line] = std::sqrt(lines.sums(line, alike.front().effect).squares);
    }
    return total;
  }
  std::map<std::int64_t, double> of_number;
  for (std::size_t line = 0; line < total.effect.size(); ++line) {
    of_number.clear();
    for (const ErrorSource& source : alike) {
      std::int64_t number = -*terms_apart(alike.front(), source, lines);
      lines.for_each(line, [&](std::size_t i) { of_number[number++] += source.effect[i]; });
    }
    double squares = 0;
    for (const auto& [number, effect] : of_number) squares += square(effect);
    total.effect[line] = std::sqrt(squares);
  }
  return total;
}

// Propagates the sources of the terms. A source that all terms share stays, and its effects add up.
void add_summed(std::vector<ErrorSource> sources, const Lines& lines, TrackedNode& node) {
  std::vector<std::vector<ErrorSource>> own;
  for (ErrorSource& source : sources) {
    if (!source.varies(lines.dimension()) || lines.length() <= 1) {
      ErrorSource total{source.identity, source.base, source.strides,
                        std::vector<double>(lines.count())};
      for (std::size_t line = 0; line < total.effect.size(); ++line) {
        total.effect[line] = lines.sum(line, source.effect);
      }
      std::vector<ErrorSource> one;
      one.push_back(std::move(total));
      add_sources(std::move(one), node);
    } else if (is_shared(source, node.sizes)) {
      for (ErrorSource& part : mixed(source, lines, node.sizes)) {
        node.sources.push_back(std::move(part));
      }
    } else {
      const auto known = std::ranges::find_if(own, [&](const std::vector<ErrorSource>& alike) {
        return terms_apart(alike.front(), source, lines).has_value();
      });
      if (known != own.end()) {
        known->push_back(std::move(source));
      } else {
        own.emplace_back().push_back(std::move(source));
      }
    }
  }
  for (const auto& alike : own) node.sources.push_back(of_own(alike, lines, node.sizes));
}

}  // namespace

Tracked sum(Tracked a, std::size_t dimension) {
  TrackedNode terms = std::move(a).release();
  const Lines lines(terms, dimension);
  TrackedNode node = of_lines(terms, lines, dimension);
  if (node.worst.empty()) node.worst.resize(lines.count());
  std::vector<double> sigma(lines.count());
  BiasOfSums biases(terms, lines);
  const std::vector<double>& centres = terms.centres.empty() ? terms.values : terms.centres;
  for (std::size_t line = 0; line < lines.count(); ++line) {
    const LineSums of_terms = lines.sums(line, centres);
    const double total = of_terms.sum;
    const double most = terms.worst.empty() ? 0 : lines.sum(line, terms.worst);
    node.values[line] = terms.centres.empty() ? total : lines.sum(line, terms.values);
    if (!terms.centres.empty()) node.centres[line] = total;
    if (!std::isfinite(total)) continue;  // errors of non-finite results are unknown
    const double magnitudes = of_terms.magnitudes + most;
    const SumError error = magnitudes > largest_finite(terms.numerics->accumulator)
                               ? error_past_range(magnitudes)
                               : error_of_present(present_terms(terms, lines, line, centres),
                                                  lines.length(), of_terms, most, *terms.numerics);
    const RoundingBias bias = biases.of(line, of_terms);
    sigma[line] = error.sigma + bias.of_terms / 6;  // so that 6 sigma include the bias
    node.worst[line] = most + error.worst;
    if (!terms.systematic.empty()) node.systematic[line] = lines.sum(line, terms.systematic);
    if (bias.all() > 0) {
      node.systematic.resize(lines.count());
      node.systematic[line] += bias.all();
    }
  }
  add_summed(std::move(terms.sources), lines, node);
  terms.sources.clear();
  for (ErrorSource& source : node.sources) {
    for (std::size_t line = 0; line < lines.count(); ++line) {
      if (!std::isfinite(node.centre(line))) source.effect[line] = 0;
    }
  }
  if (std::ranges::all_of(node.worst, [](double w) { return w == 0; })) node.worst.clear();
  add_source(std::move(sigma), false, node);
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked mean(Tracked a, std::size_t dimension) {
  const auto count = static_cast<double>(split_at(a.sizes(), dimension).size);
  return sum(std::move(a), dimension) / count;
}

}  // namespace plumb::reference
