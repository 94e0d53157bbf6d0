// SPDX-License-Identifier: Apache-2.0
#include "cases/bias.h"

#include <algorithm>
#include <cmath>

namespace plumb::cases {

BiasTest::BiasTest(reference::Format output, std::int64_t columns)
    : unit_(reference::unit_roundoff(output)), columns_(static_cast<double>(columns)) {}

void BiasTest::add(const RowModel& model, double mean_error) {
  if (!model.finite || model.magnitude == 0) return;
  // A row of representable values has no variance at all; it may still not decide everything.
  const double rounding = unit_ * model.magnitude;
  const double weight = model.magnitude / (model.variance + rounding * rounding / columns_);
  deviation_ += weight * (mean_error - model.mean);
  variance_ += weight * weight * model.variance;
  step_ = std::max(step_, weight * model.step);
  allowance_ += weight * model.allowance;
  magnitude_ += weight * model.magnitude;
}

Bias BiasTest::result() const {
  if (magnitude_ == 0) return {};
  const double limit = allowance_ + tail(kBiasSigmas, variance_, step_);
  // Zero over zero cannot come: the allowance is positive.
  return {kBiasSigmas * std::abs(deviation_) / limit, deviation_ / magnitude_};
}

}  // namespace plumb::cases
