// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/other_forms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/tracked/elementwise.h"

namespace plumb::reference {

namespace {

// Error that a form adds to that of the function itself: the largest error, and its standard
// deviation.
struct ErrorOfForm {
  double most = 0, sigma = 0;
};
// Error of `count` roundings of numbers of this size.
ErrorOfForm of_roundings(int count, double size) {
  return {count * kUnitF32 * size, kUniformSigma * std::sqrt(count) * kUnitF32 * size};
}

// Error of a log2 that is then scaled. For arguments near 1, log2 has the absolute error of a
// result of 1.
ErrorOfForm of_log2(double size, double unit) {
  const ErrorOfForm scaling = of_roundings(2, size);
  const double beside = size < 1 ? unit * std::sqrt(1 - size * size) : 0;
  return {unit * std::max(0.0, 1 - size) + scaling.most,
          std::sqrt(square(kUniformSigma * beside) + square(scaling.sigma))};
}

// Applies a monotone function that a kernel computes in another form. error_of(x, size): the error
// that the form adds for operand x with a result of this size.
Tracked in_form(Tracked a, const auto& value, const auto& derivative, const auto& moved,
                const auto& error_of) {
  return elementwise<ResultRounding::function>(std::move(a), value, [&](const UncertainElement& x) {
    LocalChange change = monotone_change(x, value, derivative, moved);
    const double size = std::abs(change.value) + change.most;
    if (change.is_scaled || !(size < kInfinity)) return change;
    const ErrorOfForm error = error_of(x, size);
    change.own = error.most;
    change.own_sigma = error.sigma;
    return change;
  });
}

// If all logarithms err in one direction, those near 0 have the absolute error of a result of 1.
Tracked one_sided_near_0(Tracked logarithms, double unit) {
  TrackedNode node = std::move(logarithms).release();
  for (std::size_t i = 0; i < node.systematic.size(); ++i) {
    if (node.most(i) != 0) node.systematic[i] += unit * std::max(0.0, 1 - std::abs(node.centre(i)));
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

// Error of s = 1 / (1 + e^-x) besides that of the division: from e^-x, whose effect is multiplied
// by 1 - s, and from the sum. Or the error of the form with tanh, which is absolute. The larger one
// counts.
ErrorOfForm of_sigmoid(double x, double s, double unit) {
  const double of_exp = 1 - s, argument = 2 * kUnitF32 * x;
  const double absolute = unit / 2 * (1 - 2 * s);
  const double relative = of_exp * (unit + argument) + kUnitF32;
  const double of_tanh = std::abs(absolute) + kUnitF32 * s - unit * s;
  const double variance =
      square(s) * (square(of_exp) * (square(unit) + square(argument) / 2) + square(kUnitF32));
  const double variance_of_tanh = square(absolute) + square(kUnitF32 * s) - square(unit * s);
  return {std::max(s * relative * (1 + relative), of_tanh),
          kUniformSigma * std::sqrt(std::max(variance, variance_of_tanh))};
}

}  // namespace

Tracked exp_by_exp2(Tracked a) {
  const auto value = [](double x) { return std::exp(x); };
  return in_form(
      std::move(a), value, [](double, double y) { return y; }, value,
      [](const UncertainElement& x, double size) {
        const double argument = std::abs(x.at) + x.most;
        return of_roundings(2, size * argument * (1 + 2 * kUnitF32 * argument));
      });
}

Tracked log_by_log2(Tracked a) {
  const double unit = function_error(*a.node()->numerics);
  const auto value = [](double x) { return std::log(x); };
  Tracked result = in_form(
      std::move(a), value, [](double x, double) { return 1 / x; }, value,
      [&](const UncertainElement& x, double size) {
        return size == 0 && x.is_exact() ? ErrorOfForm() : of_log2(size, unit);
      });
  return one_sided_near_0(std::move(result), unit);
}

Tracked log1p(Tracked a) {
  const double unit = function_error(*a.node()->numerics);
  const auto value = [](double x) { return std::log1p(x); };
  return in_form(
      std::move(a), value, [](double x, double) { return 1 / (1 + x); }, value,
      [&](const UncertainElement& x, double size) {
        if (x.at < 1) return ErrorOfForm();
        const ErrorOfForm sum = of_roundings(1, 1), log = of_log2(size, unit);
        return ErrorOfForm{sum.most + log.most, std::sqrt(square(sum.sigma) + square(log.sigma))};
      });
}

Tracked sqrt_by_rsqrt(Tracked a) {
  return in_form(
      std::move(a), [](double x) { return std::sqrt(x); },
      [](double, double y) { return y == 0 ? 0 : 0.5 / y; },
      [](double x) { return std::sqrt(std::max(0.0, x)); },
      [](const UncertainElement&, double size) { return of_roundings(1, size); });
}

Tracked sigmoid_by_exp2_or_tanh(Tracked a) {
  const double unit = function_error(*a.node()->numerics);
  const auto value = [](double x) { return 1 / (1 + std::exp(-x)); };
  return in_form(
      std::move(a), value, [](double, double y) { return y * (1 - y); }, value,
      [&](const UncertainElement& x, double size) {
        return of_sigmoid(std::abs(x.at) + x.most, std::min(size, 1.0), unit);
      });
}

}  // namespace plumb::reference
