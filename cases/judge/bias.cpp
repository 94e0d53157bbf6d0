// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/bias.h"

#include <algorithm>
#include <cmath>

namespace plumb::cases {

BiasTest::BiasTest(reference::Format output, std::int64_t columns)
    : unit_(reference::unit_roundoff(output)), columns_(static_cast<double>(columns)) {}

void BiasTest::add(const RowModel& model, double mean_error) {
  // Skip rows that a device may flush to zero: they show nothing, and their squares underflow
  // below.
  constexpr double kFlushed = 0x1p-126;
  if (!model.mean_predicted || !(model.magnitude >= kFlushed)) return;
  // Skip rows whose error has no limit: a sum over the row is past fp32's range.
  if (std::isinf(model.spread.variance + model.spread.steps + model.allowance)) return;
  // A row of exactly representable values has zero variance. The rounding term keeps its weight
  // finite, so that one such row does not decide the whole test.
  const double rounding = unit_ * model.magnitude;
  const double weight = model.magnitude / (model.spread.variance + rounding * rounding / columns_);
  deviation_ += weight * (mean_error - model.mean);
  allowance_ += weight * model.allowance;
  magnitude_ += weight * model.magnitude;
  spread_.steps += weight * model.spread.steps;
  if (model.factor != 0) {
    Together& rows = by_factor_[model.factor];
    rows.deviation += weight * std::sqrt(model.spread.variance);
    rows.step += weight * model.spread.step;
    return;
  }
  spread_.variance += weight * weight * model.spread.variance;
  spread_.step = std::max(spread_.step, weight * model.spread.step);
}

Bias BiasTest::result() const {
  if (magnitude_ == 0) return {};
  // The limit is never 0, because the allowance is positive.
  Spread all = spread_;
  for (const auto& [factor, rows] : by_factor_) {
    all.variance += rows.deviation * rows.deviation;
    all.step = std::max(all.step, rows.step);
  }
  const double limit = allowance_ + tail(kBiasSigmas, all);
  return {kBiasSigmas * std::abs(deviation_) / limit, deviation_ / magnitude_};
}

}  // namespace plumb::cases
