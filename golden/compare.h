// SPDX-License-Identifier: Apache-2.0
//
// Two results of one case: how many rows moved, by how much, and whether they may have.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "golden/capture.h"
#include "golden/model.h"
#include "golden/provenance.h"

namespace plumb::golden {

// How far one output is from its golden.
struct TensorDrift {
  std::string tensor;
  std::int64_t rows = 0, rows_moved = 0;
  // Of the elements whose values are stored.
  std::int64_t elements = 0, elements_moved = 0;
  double ulp = 0;  // largest distance: ulp of floats, codes of bytes, numbers
  // Largest share of what the arithmetic of two honest results may differ, their last rounding set
  // aside; -1: no bound.
  double of_bound = -1;
  std::string where;                        // of the largest, with both values
  std::array<std::int64_t, 8> histogram{};  // of distances; kHistogram names the columns
  bool moved() const { return rows_moved > 0 || !other.empty(); }
  std::string other;  // what is another tensor altogether: shape, type, format
};
inline constexpr std::array<std::string_view, 8> kHistogram = {"1",    "2",     "3-4",  "5-8",
                                                               "9-16", "17-64", "more", "NaN"};

// Everything that differs between a golden and another, or what was just computed, whose bounds
// then give the distances a meaning.
std::vector<TensorDrift> drift_between(const CaseGolden& golden, const CaseGolden& other,
                                       const GoldenCapture* capture = nullptr);
// "out: 3 of 4 rows, 812 of 28672 elements moved, at most 1 ulp, 0.31 of the bound; out [0, 7]:
// ..."
std::string text_of(const TensorDrift& drift);
// "ulp 1: 800, 2: 12"
std::string histogram_text(const TensorDrift& drift);

enum class Agreement {
  not_asked,   // the row wants none, or the run is not the one that goldens are about
  no_goldens,  // the platform has none at all
  same,        // bit for bit
  drifted,     // on another toolchain, within the bounds
  near_bound,  // the same, and past kNear of a bound
  failed
};
std::string_view name_of(Agreement agreement);
inline constexpr double kNear = 0.75;

struct GoldenComparison {
  Agreement agreement = Agreement::not_asked;
  std::string toolchain;  // how this one differs from that recorded; empty: it does not
  std::vector<TensorDrift> drifts;
  std::vector<std::string> lines;  // why it failed
};

// Of the same results; nothing if they are others.
std::optional<GoldenComparison> compare_same(const CaseGolden& golden, const CaseGolden& other,
                                             const device::Properties& device);

// Bit for bit on the recorded toolchain, or wherever `exact` says so; else within the bounds.
GoldenComparison compare(const CaseGolden& golden, const GoldenCapture& capture, bool exact);

}  // namespace plumb::golden
