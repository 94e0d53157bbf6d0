// SPDX-License-Identifier: Apache-2.0
//
// Arrays that a kernel rounds in between, to a format or to codes. If no error reaches the next
// number, the stored number is known and has no error.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "reference/rounding.h"
#include "reference/tracked/four_elements.h"
#include "reference/tracked/quantized.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Rounds to nearest. Results past the largest number become infinity.
double stored_as(Format format, double x) {
  const double rounded = nearest(format, x);
  return std::abs(rounded) > largest_finite(format) ? std::copysign(kInfinity, x) : rounded;
}

// Truncates: the nearest number of the format towards zero.
double cut_to(Format format, double x) {
  if (!std::isfinite(x)) return x;
  const double size = std::abs(x);
  double stored = nearest(format, size);
  if (stored > size) stored -= spacing(format, std::nextafter(stored, 0.0));
  return std::copysign(std::min(stored, largest_finite(format)), x);
}

double code_value(CodeFormat format, double x) {
  // A scale is at least 0, even if its error is as large as the scale.
  return decode(format, encode(format, format == CodeFormat::ue8m0 ? std::max(x, 0.0) : x));
}

// Error of store(centre + e) for a normal e, computed from 65 values of e. The position of a step
// of `store` is found to a fifth of a sigma.
RoundedError sampled_error(const auto& store, double centre, double sigma) {
  constexpr double kStep = 3.0 / 16, kReach = 6;
  double weights = 0, mean = 0, squares = 0, slope = 0;
  for (double z = -kReach; z <= kReach; z += kStep) {
    const double weight = std::exp(-z * z / 2);
    const double error = store(centre + sigma * z) - centre;
    weights += weight;
    mean += weight * error;
    squares += weight * square(error);
    slope += weight * error * z;
  }
  mean /= weights;
  return {mean, squares / weights - square(mean), slope / weights, 0, 0};
}

// Error of a stored number: the part proportional to the error before storing, its own part, and
// its largest size.
struct StoredError {
  double follows = 0, own = 0, most = 0;
};
// store(x) must be monotone. error_of(centre, sigma): error of its results.
StoredError stored_error(const auto& store, const auto& error_of, double centre, double stored,
                         double sigma, double most) {
  const auto farthest = [&](double error) {
    return std::max(std::abs(store(centre + error) - stored),
                    std::abs(store(centre - error) - stored));
  };
  StoredError error{.most = farthest(most)};
  const double flips = farthest(std::min(6 * sigma, most));
  if (flips == 0) return error;  // every kernel stores the same number
  if (!(sigma < kInfinity)) {
    error.own = error.most;
    return error;
  }
  const RoundedError rounding = error_of(centre, sigma);
  error.follows = rounding.slope / sigma;
  const double own =
      rounding.variance - square(rounding.slope) + square(centre + rounding.mean - stored);
  error.own = std::max(std::sqrt(std::max(0.0, own)), flips / 6);
  return error;
}

// `digits`: significant bits of a format with fp32's range, rounded to nearest; 0: another format
// or rounding.
Tracked stored_by(Tracked a, int digits, const auto& store, const auto& error_of) {
  TrackedNode node = std::move(a).release();
  const std::size_t count = node.values.size();
  const double* const centres = (node.centres.empty() ? node.values : node.centres).data();
  const double* const most = node.worst.empty() ? nullptr : node.worst.data();
  const bool exact = node.worst.empty() && node.sources.empty();
  const std::size_t errors = exact ? 0 : count;
  std::vector<double> stored(count), follows(errors), own(errors), worst(errors);
  for (std::size_t i = 0; i < count; ++i) {
    if (digits != 0) {
      i += store_known(digits, centres + i, most == nullptr ? nullptr : most + i, count - i,
                       stored.data() + i);
    }
    if (i == count) break;
    const double centre = centres[i];
    stored[i] = std::isnan(centre) ? centre : store(centre);
    if (exact || !std::isfinite(centre) || !std::isfinite(stored[i])) continue;
    const StoredError error =
        stored_error(store, error_of, centre, stored[i], std::sqrt(node.variance(i)), node.most(i));
    follows[i] = error.follows;
    own[i] = error.own;
    worst[i] = error.most;
  }
  if (!node.centres.empty() || stored != node.values) node.centres = std::move(stored);
  if (std::ranges::all_of(worst, [](double w) { return w == 0; })) {
    node.worst.clear();
    node.sources.clear();
    node.systematic.clear();
  } else {
    node.worst = std::move(worst);
  }
  for (ErrorSource& source : node.sources) {
    scale_line(source.effect.data(), 1, follows.data(), count, source.effect.data());
  }
  for (std::size_t i = 0; i < node.systematic.size(); ++i) {
    node.systematic[i] = scaled_error(node.systematic[i], follows[i]);
  }
  add_source(std::move(own), false, node);
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

int stored_digits(Format format) {
  switch (format) {
    case Format::f32: return 24;
    case Format::tf32: return 11;
    case Format::bf16: return 8;
    default: return 0;
  }
}

// Number of consecutive columns that may share an error: 1, or all of a row.
std::int64_t columns_of_an_error(const TrackedNode& node) {
  if (node.sizes.empty()) return 1;
  const bool own = std::ranges::all_of(node.sources, [&](const ErrorSource& source) {
    return source.varies(node.sizes.size() - 1);
  });
  return own ? 1 : std::max<std::int64_t>(node.sizes.back(), 1);
}

}  // namespace

Tracked rounded(Tracked a, Format format) {
  if (format == Format::tf32_truncated) {
    throw std::invalid_argument("rounded: to nearest only, and not to tf32_truncated");
  }
  return stored_by(
      std::move(a), stored_digits(format), [=](double x) { return stored_as(format, x); },
      [=](double centre, double sigma) { return rounded_error(format, centre, sigma); });
}

Tracked truncated(Tracked a, Format format) {
  const auto store = [=](double x) { return cut_to(format, x); };
  return stored_by(std::move(a), 0, store, [&](double centre, double sigma) {
    return sampled_error(store, centre, sigma);
  });
}

Tracked cast(Tracked a, CodeFormat format) {
  const auto store = [=](double x) { return code_value(format, x); };
  return stored_by(std::move(a), 0, store, [&](double centre, double sigma) {
    return sampled_error(store, centre, sigma);
  });
}

QuantizedArray quantized(Tracked a, CodeFormat format, Format through, bool structured) {
  CodeEstimate codes{.format = format,
                     .before = estimate_of(a, Format::f64, structured),
                     .through = through,
                     .shared_error = columns_of_an_error(*a.node())};
  const auto store = [=](double x) { return code_value(format, nearest(through, x)); };
  Tracked values = stored_by(std::move(a), 0, store, [&](double centre, double sigma) {
    return sampled_error(store, centre, sigma);
  });
  return {std::move(values), std::move(codes)};
}

}  // namespace plumb::reference
