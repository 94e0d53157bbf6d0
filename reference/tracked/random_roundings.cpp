// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/random_roundings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "reference/tracked/elementwise.h"

namespace plumb::reference {

// How one evaluation rounds. `none`: not at all. `random`: each result is rounded up or down at
// random, and each function result has its own random error. `functions_above`, `functions_below`:
// results are rounded to nearest, and all function results have the largest error in one direction.
enum class Dice { none, random, functions_above, functions_below };

class RoundingDice {
 public:
  RoundingDice(Dice how, const Numerics& numerics, std::uint64_t seed)
      : how_(how), numerics_(numerics), state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }

  // Rounds x to one of its two fp32 neighbours at random, the nearer one more often, so that the
  // mean is x.
  double rounded(double x) {
    const auto near = static_cast<float>(x);
    if (how_ != Dice::random || double{near} == x || !std::isfinite(near)) {
      return how_ == Dice::none ? x : near;
    }
    ++roundings_;
    const double to = near < x ? kInfinity : -kInfinity;
    const double far = std::nextafter(near, static_cast<float>(to));
    return uniform() * std::abs(far - near) < std::abs(x - near) ? far : near;
  }
  double function(double x) {
    const double most = function_error(numerics_) - kUnitF32;  // the final rounding is added below
    if (how_ == Dice::none || !(most > 0)) return rounded(x);
    ++roundings_;
    const double part = how_ == Dice::random            ? 2 * uniform() - 1
                        : how_ == Dice::functions_above ? 1
                                                        : -1;
    return rounded(x * (1 + most * part));
  }
  double added(double sum) { return numerics_.accumulator == Format::f64 ? sum : rounded(sum); }
  int chains() const { return how_ == Dice::none ? 1 : std::max(numerics_.chains, 1); }
  bool shuffles() const { return how_ == Dice::random; }
  double roundings() const { return static_cast<double>(roundings_); }

 private:
  Dice how_;
  Numerics numerics_;
  std::uint64_t state_;
  std::int64_t roundings_ = 0;
};

namespace {

SampledArray of_pairs(const SampledArray& a, const SampledArray& b, const auto& function) {
  const TrackedSizes sizes = broadcast_sizes(a.sizes, b.sizes);
  const BroadcastLines of_a = broadcast_lines(a.sizes, sizes);
  const BroadcastLines of_b = broadcast_lines(b.sizes, sizes);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(elements_of(sizes)));
  for (std::size_t line = 0; line < of_a.first.size(); ++line) {
    for (std::size_t j = 0; j < of_a.length; ++j) {
      values.push_back(function(a.values[of_a.first[line] + j * of_a.step],
                                b.values[of_b.first[line] + j * of_b.step]));
    }
  }
  return {std::move(values), sizes, a.rounding};
}
SampledArray by_function(SampledArray a, const auto& function) {
  for (double& x : a.values) x = a.rounding->function(function(x));
  return a;
}
SampledArray sampled_constant(const SampledArray& a, double b) {
  return {{static_cast<double>(static_cast<float>(b))}, {}, a.rounding};
}

SampledArray folded_lines(const SampledArray& a, std::size_t dimension, const auto& fold) {
  const TrackedSplit split = split_at(a.sizes, dimension);
  SampledArray result{{}, a.sizes, a.rounding};
  result.sizes[dimension] = 1;
  std::vector<double> line(static_cast<std::size_t>(split.size));
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (std::int64_t inner = 0; inner < split.inner; ++inner) {
      for (std::int64_t k = 0; k < split.size; ++k) {
        line[static_cast<std::size_t>(k)] =
            a.values[static_cast<std::size_t>((outer * split.size + k) * split.inner + inner)];
      }
      result.values.push_back(fold(line));
    }
  }
  return result;
}

// Adds terms in sequential chains and joins the chains by a tree. The order of terms is random if
// the dice shuffle.
double sum_by_chance(std::vector<double> terms, RoundingDice& dice) {
  for (std::size_t i = terms.size(); dice.shuffles() && i > 1; --i) {
    std::swap(terms[i - 1], terms[dice.bits() % i]);
  }
  const auto chains = static_cast<std::size_t>(dice.chains());
  std::vector<double> sums(chains);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    double& sum = sums[i * chains / terms.size()];
    sum = dice.added(sum + terms[i]);
  }
  for (std::size_t left = chains; left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) {
      sums[i] = dice.added(sums[i] + sums[i + (left + 1) / 2]);
    }
  }
  return sums[0];
}

}  // namespace

SampledArray operator+(const SampledArray& a, const SampledArray& b) {
  return of_pairs(a, b, [&](double x, double y) { return a.rounding->rounded(x + y); });
}
SampledArray operator-(const SampledArray& a, const SampledArray& b) {
  return of_pairs(a, b, [&](double x, double y) { return a.rounding->rounded(x - y); });
}
SampledArray operator*(const SampledArray& a, const SampledArray& b) {
  return of_pairs(a, b, [&](double x, double y) { return a.rounding->rounded(x * y); });
}
SampledArray operator/(const SampledArray& a, const SampledArray& b) {
  return of_pairs(a, b, [&](double x, double y) { return a.rounding->function(x / y); });
}
SampledArray operator+(const SampledArray& a, double b) { return a + sampled_constant(a, b); }
SampledArray operator*(const SampledArray& a, double b) { return a * sampled_constant(a, b); }
SampledArray operator/(const SampledArray& a, double b) { return a / sampled_constant(a, b); }
SampledArray exp(const SampledArray& a) {
  return by_function(a, [](double x) { return std::exp(x); });
}
SampledArray log(const SampledArray& a) {
  return by_function(a, [](double x) { return std::log(x); });
}
SampledArray sqrt(const SampledArray& a) {
  return by_function(a, [](double x) { return std::sqrt(std::max(x, 0.0)); });
}
SampledArray rsqrt(const SampledArray& a) {
  return by_function(a, [](double x) { return 1 / std::sqrt(x); });
}
SampledArray sigmoid(const SampledArray& a) {
  return by_function(a, [](double x) { return 1 / (1 + std::exp(-x)); });
}
SampledArray max(const SampledArray& a, const SampledArray& b) {
  return of_pairs(a, b, [](double x, double y) { return std::max(x, y); });
}
SampledArray sum(const SampledArray& a, std::size_t dimension) {
  return folded_lines(a, dimension, [&](const std::vector<double>& line) {
    return sum_by_chance(line, *a.rounding);
  });
}
SampledArray mean(const SampledArray& a, std::size_t dimension) {
  return sum(a, dimension) / static_cast<double>(split_at(a.sizes, dimension).size);
}
SampledArray max(const SampledArray& a, std::size_t dimension) {
  if (split_at(a.sizes, dimension).size == 0) throw std::invalid_argument("max: of no element");
  return folded_lines(a, dimension, [](const std::vector<double>& line) {
    return *std::ranges::max_element(line);
  });
}
SampledArray reshaped(SampledArray a, TrackedSizes sizes) {
  if (elements_of(sizes) != elements_of(a.sizes)) {
    throw std::invalid_argument("reshaped: another number of elements");
  }
  a.sizes = std::move(sizes);
  return a;
}

namespace {

using SampledFunction = std::function<SampledArray(const std::vector<SampledArray>&)>;

// Random values of the inputs' error sources. Each source is drawn when it is first used.
class DrawnSources {
 public:
  explicit DrawnSources(RoundingDice& dice) : dice_(dice) {}

  double of(const ErrorSource& source, std::int64_t number) {
    const auto [known, is_new] = drawn_.try_emplace({source.identity.get(), number}, 0.0);
    if (is_new) known->second = dice_.normal();
    return known->second;
  }

 private:
  RoundingDice& dice_;
  std::map<std::pair<const SourceName*, std::int64_t>, double> drawn_;
};

std::vector<double> drawn_input(const TrackedNode& node, DrawnSources& drawn) {
  std::vector<double> errors(node.values.size());
  for (const ErrorSource& source : node.sources) {
    const std::vector<std::int64_t> numbers = numbers_of(source, node.sizes);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i] += source.effect[i] * drawn.of(source, numbers[i]);
    }
  }
  std::vector<double> values(errors.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = node.centre(i) + std::clamp(errors[i], -node.most(i), node.most(i));
  }
  return values;
}

struct Evaluation {
  std::vector<double> values;
  TrackedSizes sizes;
  double roundings = 0;
};
Evaluation evaluated(const SampledFunction& f, const std::vector<Tracked>& inputs, Dice how,
                     std::uint64_t seed, bool centres = true) {
  const auto dice = std::make_shared<RoundingDice>(how, *inputs.front().node()->numerics, seed);
  DrawnSources drawn(*dice);
  std::vector<SampledArray> arrays;
  for (const Tracked& input : inputs) {
    arrays.emplace_back(how == Dice::random ? drawn_input(*input.node(), drawn)
                        : centres           ? input.centres()
                                            : input.values(),
                        input.sizes(), dice);
  }
  SampledArray result = f(arrays);
  return {std::move(result.values), std::move(result.sizes), dice->roundings()};
}

// Sum over all input elements of (largest error / sigma)^2: each counts as so many roundings.
double squared_limits(const std::vector<Tracked>& inputs) {
  double total = 0;
  for (const Tracked& input : inputs) {
    for (std::int64_t i = 0; i < elements_of(input.sizes()); ++i) {
      const double sigma = input.sigma(i);
      if (sigma > 0) total += square(input.worst(i) / sigma);
    }
  }
  return total;
}

// One source per evaluation, at most 16. More evaluations are combined to random mixes with the
// same variances.
std::vector<ErrorSource> sources_of(const std::vector<std::vector<double>>& deviations,
                                    double margin) {
  constexpr std::size_t kMost = 16;
  const std::size_t samples = deviations.size(), count = std::min(samples, kMost);
  const double scale = margin / std::sqrt(static_cast<double>(samples - 1));
  std::vector<ErrorSource> sources(count);
  for (std::size_t j = 0; j < count; ++j) {
    sources[j].identity = new_source();
    sources[j].effect.resize(deviations.front().size());
  }
  for (std::size_t i = 0; i < deviations.front().size(); ++i) {
    double squares = 0, of_mixes = 0;
    for (std::size_t s = 0; s < samples; ++s) squares += square(deviations[s][i]);
    for (std::size_t j = 0; j < count; ++j) {
      double& effect = sources[j].effect[i];
      for (std::size_t s = 0; s < samples; ++s) {
        if (samples <= kMost) effect += s == j ? deviations[s][i] : 0;
        if (samples > kMost) effect += sign_by_chance(s, j) * deviations[s][i];
      }
      of_mixes += square(effect);
    }
    for (ErrorSource& source : sources) {
      source.effect[i] *= of_mixes > 0 ? scale * std::sqrt(squares / of_mixes) : 0;
    }
  }
  return sources;
}

}  // namespace

// The worst case. To first order the error is a sum of c_i e_i over n roundings. By Cauchy-Schwarz
// it is at most sqrt(n) times the root of the sum of (c_i most_i)^2. The error of a function is
// uniform, so most_i is sqrt(3) standard deviations. A correct rounding of x is off by min(p, 1 -
// p) places, if x is p of a place above a number. A random rounding has the variance p (1 - p), at
// least the square of that error. In another order of a sum, x has another p; half a place is 1.3
// standard deviations at the average p. So the error is at most sqrt(3 n) standard deviations. An
// input's error counts as (most / sigma)^2 roundings in n.
Tracked by_random_roundings(const SampledFunction& f, const std::vector<Tracked>& inputs,
                            int seeds) {
  if (inputs.empty()) throw std::invalid_argument("by_random_roundings: no inputs");
  if (seeds < 8) throw std::invalid_argument("by_random_roundings: fewer than 8 seeds");
  for (const Tracked& input : inputs) {
    check_alike(*input.node()->numerics, *inputs.front().node()->numerics);
  }
  const Evaluation right = evaluated(f, inputs, Dice::none, 0);
  const std::size_t count = right.values.size();
  TrackedNode node{right.sizes, inputs.front().node()->numerics,
                   evaluated(f, inputs, Dice::none, 0, false).values};
  if (node.values != right.values) node.centres = right.values;

  std::vector<std::vector<double>> deviations;
  std::vector<double> means(count);
  double roundings = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    Evaluation one = evaluated(f, inputs, Dice::random, static_cast<std::uint64_t>(seed) + 1);
    roundings = std::max(roundings, one.roundings);
    for (std::size_t i = 0; i < count; ++i) {
      one.values[i] = std::isfinite(right.values[i]) ? one.values[i] - right.values[i] : 0;
      means[i] += one.values[i] / seeds;
    }
    deviations.push_back(std::move(one.values));
  }
  // The standard deviation of few evaluations may be too small by chance, with a relative error of
  // 1 / sqrt(2 n).
  const double margin = 1 + 1.4 / std::sqrt(seeds);
  node.sources = sources_of(deviations, margin);
  const double worst = std::sqrt(3 * roundings + squared_limits(inputs));
  const Evaluation above = evaluated(f, inputs, Dice::functions_above, 0);
  const Evaluation below = evaluated(f, inputs, Dice::functions_below, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const double sigma = std::sqrt(node.variance(i));
    node.worst.push_back(scaled_error(sigma, worst));
    const double by_functions = std::max(std::abs(above.values[i] - right.values[i]),
                                         std::abs(below.values[i] - right.values[i]));
    const bool finite = std::isfinite(right.values[i]);
    node.systematic.push_back(finite ? std::abs(means[i]) + by_functions : 0);
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
