// SPDX-License-Identifier: Apache-2.0
//
// What tracked.h's arrays are made of, for the files that compute with them.
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

// A row of sources, numbered from 0. They have no values, only this identity. Elements that are
// picked in an order without a rule have a derived row: the same for the same pick, so that two
// equal picks meet.
class SourceName;
using SourceIdentity = std::shared_ptr<const SourceName>;
class SourceName {
 public:
  using Pick = std::vector<std::int64_t>;
  explicit SourceName(std::vector<float> results = {}) : results_(std::move(results)) {}
  SourceIdentity picked(const Pick& pick) const;
  // What the rounding of a function gives without other errors, where source `number` is that
  // rounding. 0: it is none, or of a function whose results nobody kept.
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

// Element (i, j, ..) has the source numbered  base + strides[0] i + strides[1] j + ..  of its row.
// Along dimensions with a stride of 0, elements share one. The stride of a dimension of size 1 says
// where a neighbour's source would be. Slices, joins and other shapes of an array read the same row
// in other ways, so that their common elements are known.
struct ErrorSource {
  SourceIdentity identity;
  std::int64_t base = 0;
  std::array<std::int64_t, kMostTrackedDimensions> strides{};
  std::vector<double> effect;  // on each element, of one standard deviation

  bool varies(std::size_t dimension) const { return strides[dimension] != 0; }
};

struct TrackedNode {
  TrackedSizes sizes;
  std::shared_ptr<const Numerics> numerics;
  std::vector<double> values;
  std::vector<double> centres = {};     // empty: the values
  std::vector<double> worst = {};       // largest |error| about the centre; empty: none
  std::vector<double> systematic = {};  // what errors of one sign make of it; empty: none
  std::vector<ErrorSource> sources = {};

  double centre(std::size_t i) const { return centres.empty() ? values[i] : centres[i]; }
  double most(std::size_t i) const { return worst.empty() ? 0 : worst[i]; }
  double one_sided(std::size_t i) const { return systematic.empty() ? 0 : systematic[i]; }
  double variance(std::size_t i) const;
  std::vector<double> sigmas() const;   // of each element
  void write_sigmas(double* to) const;  // to zeros
  // What honest errors of each element stay within: six standard deviations, or the worst. Empty:
  // nothing.
  std::vector<double> reaches() const;
};

std::int64_t elements_of(const TrackedSizes& sizes);
// Throws std::invalid_argument for more than 8 dimensions, or a negative size.
void check_sizes(const TrackedSizes& sizes);
// Throws std::invalid_argument where the operands were declared differently.
void check_alike(const Numerics& a, const Numerics& b);

// Elements as [outer, size, inner] around one dimension.
struct TrackedSplit {
  std::int64_t outer = 1, size = 1, inner = 1;
};
// Throws std::invalid_argument for a dimension that there is not.
TrackedSplit split_at(const TrackedSizes& sizes, std::size_t dimension);

// Do elements along a dimension with several of them share such a source?
bool is_shared(const ErrorSource& source, const TrackedSizes& sizes);
// New sources. `like`: elements have their own along dimensions where they have there.
ErrorSource own_source(const TrackedSizes& sizes, std::vector<double> effect);
ErrorSource new_source_like(const ErrorSource& like, const TrackedSizes& sizes,
                            std::vector<double> effect);
// The same sources at the same elements?
bool are_alike(const ErrorSource& a, const ErrorSource& b, const TrackedSizes& sizes);

// The array, with its values as the results of its own sources (SourceName::result).
Tracked with_results(Tracked a);

// +1 or -1 by chance, always the same for the same numbers. `column`: below 16.
double sign_by_chance(std::uint64_t term, std::uint64_t column);

// Writes the rows of an array, those of the last dimension, to an estimate from row `first` on. The
// estimate has a shift where the array has centres.
void write_rows(const TrackedNode& node, std::int64_t first, Estimate& estimate);

// The numbers of the sources of all elements.
std::vector<std::int64_t> numbers_of(const ErrorSource& source, const TrackedSizes& sizes);

// The elements `from` of an array, under other sizes. Its sources keep their strides.
Tracked picked(TrackedNode node, TrackedSizes sizes, const std::vector<std::size_t>& from);

// A new source: one for each element, or one that all share. Nothing where all effects are 0.
void add_source(std::vector<double> effect, bool shared, TrackedNode& node);
// Adds the effects of sources that the node has already, and appends all others.
void add_sources(std::vector<ErrorSource> more, TrackedNode& node);
// Sources of single elements that no other array has become one, so that there are few.
void join_own_sources(TrackedNode& node);

}  // namespace plumb::reference
