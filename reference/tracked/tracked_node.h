// SPDX-License-Identifier: Apache-2.0
//
// The data of tracked.h's arrays, for the files that compute with them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "reference/bound.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// A family of sources, numbered from 0. Sources have no values, only this identity. Elements picked
// in an irregular order get a derived family. Equal picks get the same derived family, so that
// their correlation is known.
class SourceName;
using SourceIdentity = std::shared_ptr<const SourceName>;
class SourceName {
 public:
  using Pick = std::vector<std::int64_t>;
  explicit SourceName(std::vector<float> results = {}) : results_(std::move(results)) {}
  SourceIdentity picked(const Pick& pick) const;
  // If source `number` is the rounding of a function: the rounded result without other errors. 0 if
  // the source is no rounding, or if its result was not kept.
  float result(std::int64_t number) const {
    const auto size = static_cast<std::int64_t>(results_.size());
    return number >= 0 && number < size ? results_[static_cast<std::size_t>(number)] : 0;
  }

 private:
  std::vector<float> results_;
  mutable std::mutex mutex_;
  mutable std::map<Pick, std::weak_ptr<const SourceName>> picked_;
};
SourceIdentity new_source();

constexpr std::size_t kMostTrackedDimensions = 8;

// Element (i, j, ..) has source number base + strides[0] i + strides[1] j + .. of its family. Along
// dimensions with stride 0, elements share one source. The stride of a dimension of size 1 says
// which source a neighbour would have. Slices, joins and reshapes of an array use the same family
// with other strides, so that the correlation of common elements is known.
struct ErrorSource {
  SourceIdentity identity;
  std::int64_t base = 0;
  std::array<std::int64_t, kMostTrackedDimensions> strides{};
  std::vector<double> effect;  // change of each element for one standard deviation

  bool varies(std::size_t dimension) const { return strides[dimension] != 0; }
};

struct TrackedNode {
  TrackedSizes sizes;
  std::shared_ptr<const Numerics> numerics;
  std::vector<double> values;
  std::vector<double> centres = {};     // empty: equal to values
  std::vector<double> worst = {};       // largest |result - centre|; empty: none
  std::vector<double> systematic = {};  // largest error with one sign in all elements; empty: none
  std::vector<ErrorSource> sources = {};

  double centre(std::size_t i) const { return centres.empty() ? values[i] : centres[i]; }
  double most(std::size_t i) const { return worst.empty() ? 0 : worst[i]; }
  double one_sided(std::size_t i) const { return systematic.empty() ? 0 : systematic[i]; }
  double variance(std::size_t i) const;
  std::vector<double> sigmas() const;   // of each element
  void write_sigmas(double* to) const;  // `to` must hold zeros
  // Reach of each element: limit of the errors of a correct kernel, the smaller of 6 sigma and the
  // worst error. Empty: no errors.
  std::vector<double> reaches() const;
};

std::int64_t elements_of(const TrackedSizes& sizes);
// Throws std::invalid_argument for more than 8 dimensions, or a negative size.
void check_sizes(const TrackedSizes& sizes);
// Throws std::invalid_argument if the operands have different numerics.
void check_alike(const Numerics& a, const Numerics& b);

// An array viewed as [outer, size, inner] around one dimension.
struct TrackedSplit {
  std::int64_t outer = 1, size = 1, inner = 1;
};
// Throws std::invalid_argument if the dimension does not exist.
TrackedSplit split_at(const TrackedSizes& sizes, std::size_t dimension);

// True if elements along some dimension of size > 1 share the source.
bool is_shared(const ErrorSource& source, const TrackedSizes& sizes);
// New sources. own_source: one for each element. new_source_like: elements differ along the
// dimensions in which they differ in `like`.
ErrorSource own_source(const TrackedSizes& sizes, std::vector<double> effect);
ErrorSource new_source_like(const ErrorSource& like, const TrackedSizes& sizes,
                            std::vector<double> effect);
// True if every element has the same source in a and b.
bool are_alike(const ErrorSource& a, const ErrorSource& b, const TrackedSizes& sizes);

// Returns the array and stores its values as the results of its own sources (SourceName::result).
Tracked with_results(Tracked a);

// Pseudo-random +1 or -1, a function of the arguments only. `column` must be below 16.
double sign_by_chance(std::uint64_t term, std::uint64_t column);

// Writes the rows of an array (along its last dimension) to an estimate from row `first` on. The
// estimate has a shift if the array has centres.
void write_rows(const TrackedNode& node, std::int64_t first, Estimate& estimate);

// The source number of each element.
std::vector<std::int64_t> numbers_of(const ErrorSource& source, const TrackedSizes& sizes);

// An array of the elements `from` with other sizes. Sources keep their strides.
Tracked picked(TrackedNode node, TrackedSizes sizes, const std::vector<std::size_t>& from);

// Adds a new source: one for each element, or one that all share. Adds nothing if all effects are
// 0.
void add_source(std::vector<double> effect, bool shared, TrackedNode& node);
// Adds effects to sources that the node already has, and appends all other sources.
void add_sources(std::vector<ErrorSource> more, TrackedNode& node);
// Joins sources that no other array uses and that single elements own into one source, to keep
// their number small.
void join_own_sources(TrackedNode& node);

}  // namespace plumb::reference
