// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a result agrees with its golden.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/capture.h"
#include "golden/drift.h"
#include "golden/model.h"
#include "golden/provenance.h"

namespace plumb::golden {

enum class Agreement {
  not_asked,   // the row has no golden, or the run is not one that goldens apply to
  no_goldens,  // the platform has no goldens
  same,        // equal bits
  drifted,     // other bits on another toolchain, within the bounds
  near_bound,  // as drifted, and beyond kNear of a bound
  failed
};
std::string_view name_of(Agreement agreement);
inline constexpr double kNear = 0.75;

struct GoldenComparison {
  Agreement agreement = Agreement::not_asked;
  std::string toolchain;  // difference from the recorded toolchain; empty: none
  std::vector<TensorDrift> drifts;
  std::vector<std::string> lines;  // reasons for a failure
};

// The comparison if the results are equal bit for bit; nullopt if they differ.
std::optional<GoldenComparison> compare_same(const CaseGolden& golden, const CaseGolden& other,
                                             const device::Properties& device,
                                             const std::string& plugin = "");

// Requires equal bits on the recorded toolchain, or with `exact` anywhere; else results within the
// bounds.
GoldenComparison compare(const CaseGolden& golden, const GoldenCapture& capture, bool exact);

}  // namespace plumb::golden
