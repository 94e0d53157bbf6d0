// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/tracked.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "reference/rounding.h"
#include "reference/tracked/elementwise.h"

namespace plumb::reference {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double log_of_one_and_exp(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
// Operands of a correct kernel are not negative, so errors that would make them negative stop at 0.
double root(double x) { return std::sqrt(std::max(0.0, x)); }

Tracked constant_like(const Tracked& a, double b) {
  return {{static_cast<double>(static_cast<float>(b))}, {}, *a.node()->numerics};
}

// A divisor past the range of fp32 is infinity in some implementations, and the quotient is then 0.
bool may_be_infinite(const UncertainElement& divisor) {
  return std::abs(divisor.at) + divisor.reach > largest_finite(Format::f32);
}
void add_infinite_divisor(LocalChange& quotient) {
  const double size = std::abs(quotient.value);
  quotient.most += size;
  quotient.beyond += size / 5;  // so that 6 sigma include the quotient 0
}

}  // namespace

Tracked operator+(Tracked a, Tracked b) {
  return elementwise(std::move(a), std::move(b), SumRule{});
}

Tracked operator-(Tracked a, Tracked b) { return std::move(a) + -std::move(b); }

Tracked operator*(Tracked a, Tracked b) {
  return elementwise(std::move(a), std::move(b), ProductRule{});
}

Tracked operator/(Tracked a, Tracked b) {
  const auto value = [](double x, double y) { return x / y; };
  return elementwise<ResultRounding::function>(
      std::move(a), std::move(b), value, [&](const UncertainElement& x, const UncertainElement& y) {
        const double quotient = value(x.at, y.at), size = std::abs(quotient);
        // Smallest possible size of the divisor: within its reach, and with its worst error.
        const double near = std::abs(y.at) - y.reach, nearest = std::abs(y.at) - y.most;
        const double slope = near > 0 ? std::copysign(1 / near, y.at) : kInfinity;
        const double most = nearest > 0    ? (x.most + scaled_error(y.most, size)) / nearest
                            : y.is_exact() ? 0
                                           : kInfinity;
        LocalChange change{.value = quotient,
                           .by_first = slope,
                           .by_second = scaled_error(slope, -quotient),
                           .most = most,
                           .is_scaled = y.is_exact() && is_power_of_two(std::abs(y.at))};
        if (may_be_infinite(y)) add_infinite_divisor(change);
        return change;
      });
}

Tracked operator+(Tracked a, double b) {
  Tracked other = constant_like(a, b);
  return std::move(a) + std::move(other);
}
Tracked operator*(Tracked a, double b) {
  Tracked other = constant_like(a, b);
  return std::move(a) * std::move(other);
}
Tracked operator/(Tracked a, double b) {
  Tracked other = constant_like(a, b);
  return std::move(a) / std::move(other);
}

Tracked operator-(Tracked a) {
  return elementwise<ResultRounding::none>(
      std::move(a), [](double x) { return -x; },
      [](const UncertainElement& x) {
        return LocalChange{.value = -x.at, .by_first = -1, .most = x.most};
      });
}

Tracked exp(Tracked a) {
  return monotone(
      std::move(a), [](double x) { return std::exp(x); }, [](double, double y) { return y; });
}
Tracked log(Tracked a) {
  return monotone(
      std::move(a), [](double x) { return std::log(x); }, [](double x, double) { return 1 / x; });
}
Tracked sqrt(Tracked a) {
  return monotone(
      std::move(a), [](double x) { return std::sqrt(x); },
      [](double, double y) { return y == 0 ? 0 : 0.5 / y; }, root);
}
Tracked rsqrt(Tracked a) {
  const auto value = [](double x) { return 1 / std::sqrt(x); };
  const auto derivative = [](double x, double y) { return x == 0 ? 0 : -0.5 * y / x; };
  return with_results(
      elementwise<ResultRounding::function>(std::move(a), value, [&](const UncertainElement& x) {
        LocalChange change = monotone_change(x, value, derivative, value);
        if (may_be_infinite(x)) add_infinite_divisor(change);
        return change;
      }));
}
Tracked sigmoid(Tracked a) {
  return monotone(std::move(a), logistic, [](double, double y) { return y * (1 - y); });
}
Tracked tanh(Tracked a) {
  return monotone(
      std::move(a), [](double x) { return std::tanh(x); },
      [](double, double y) { return 1 - y * y; });
}
Tracked softplus(Tracked a) {
  return monotone(std::move(a), log_of_one_and_exp, [](double x, double) { return logistic(x); });
}

Tracked limited(Tracked a, const std::vector<double>& sizes) {
  if (a.sizes().empty() || a.sizes().front() != std::ssize(sizes)) {
    throw std::invalid_argument("limited: one size for each slice of the first dimension");
  }
  const std::vector<double>& worst = a.node()->worst;
  const std::size_t columns = a.values().size() / std::max<std::size_t>(1, sizes.size());
  std::vector<std::size_t> past;
  for (std::size_t i = 0; i < worst.size(); ++i) {
    if (!(worst[i] <= sizes[i / columns])) past.push_back(i);
  }
  if (past.empty() || a.node()->sources.empty()) return a;
  const std::vector<double> reaches = a.node()->reaches();
  std::erase_if(past, [&](std::size_t i) {
    return reaches[i] <= sizes[i / columns] || sizes[i / columns] == kInfinity;
  });
  if (past.empty()) return a;
  auto node = std::make_shared<TrackedNode>(*a.node());
  node->systematic.resize(worst.size());
  std::vector<double> own(worst.size());
  for (const std::size_t i : past) {
    const double value = std::abs(node->centre(i));
    node->worst[i] = value + sizes[i / columns];
    node->systematic[i] = value;  // all may be 0 together
    own[i] = node->worst[i] / 5;  // 6 sigma include the worst error
    for (ErrorSource& source : node->sources) source.effect[i] = 0;
  }
  add_source(std::move(own), false, *node);
  return Tracked(std::move(node));
}

Tracked max(Tracked a, Tracked b) {
  const auto value = [](double x, double y) {
    return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN()
                                          : std::max(x, y);
  };
  return elementwise<ResultRounding::none>(
      std::move(a), std::move(b), value, [&](const UncertainElement& x, const UncertainElement& y) {
        const bool first = x.at >= y.at;
        const UncertainElement& winner = first ? x : y;
        const UncertainElement& loser = first ? y : x;
        // How far the smaller operand may exceed the larger one if it moves by `by`.
        const auto passes = [&](double by) { return std::max(0.0, loser.at + by - winner.at); };
        return LocalChange{value(x.at, y.at), first ? 1.0 : 0.0, first ? 0.0 : 1.0,
                           std::max(winner.most, passes(loser.most)),
                           passes(loser.reach + winner.reach) / 6};
      });
}

Tracked abs(Tracked a) {
  return elementwise<ResultRounding::none>(
      std::move(a), [](double x) { return std::abs(x); },
      [](const UncertainElement& x) {
        // Near 0, errors of both signs of the operand become errors of one sign.
        return LocalChange{.value = std::abs(x.at),
                           .by_first = x.at < 0 ? -1.0 : 1.0,
                           .most = x.most,
                           .beyond = std::max(0.0, x.reach - std::abs(x.at)) / 3};
      });
}

Tracked select(const Tracked& condition, Tracked a, Tracked b) {
  if (!TrackedOperand(condition).is_exact()) {
    throw std::invalid_argument("select: a condition with errors");
  }
  const TrackedSizes sizes =
      broadcast_sizes(condition.sizes(), broadcast_sizes(a.sizes(), b.sizes()));
  const std::vector<double> chosen = broadcast_to(condition, sizes).centres();
  return of_two<ResultRounding::none>(
      broadcast_to(std::move(a), sizes), broadcast_to(std::move(b), sizes),
      [&](double x, double y, std::size_t i) { return chosen[i] != 0 ? x : y; },
      [&](const TrackedOperand& x, std::size_t at, const TrackedOperand& y, std::size_t bt,
          std::size_t i, std::size_t end, ResultElements<ResultRounding::none>& result) {
        set_any_elements(
            x, at, y, bt, i, end,
            [&, place = i](const UncertainElement& first, const UncertainElement& second) mutable {
              return chosen[place++] != 0
                         ? LocalChange{.value = first.at, .by_first = 1, .most = first.most}
                         : LocalChange{.value = second.at, .by_second = 1, .most = second.most};
            },
            result);
      });
}

}  // namespace plumb::reference
