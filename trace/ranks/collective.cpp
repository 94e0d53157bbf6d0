// SPDX-License-Identifier: Apache-2.0
#include "trace/ranks/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "trace/element_value.h"

namespace plumb::trace {

namespace {

using Shape = std::vector<std::int64_t>;

// A tensor that lies in pieces on the ranks, one behind the other along one dimension.
class Pieces {
 public:
  // Throws NotCompared if the pieces do not make the whole.
  Pieces(Shape whole, const std::vector<Shape>& pieces) : whole_(std::move(whole)) {
    for (dimension_ = 0; dimension_ < whole_.size(); ++dimension_) {
      if (!fit(pieces)) continue;
      for (const Shape& piece : pieces) begins_.push_back(begins_.back() + piece[dimension_]);
      for (std::size_t i = dimension_ + 1; i < whole_.size(); ++i) inner_ *= whole_[i];
      return;
    }
    throw NotCompared{"the pieces of the ranks do not make the whole along one dimension"};
  }

  struct Place {
    std::size_t rank = 0;
    std::int64_t element = 0;  // of the piece
  };
  Place operator()(std::int64_t element) const {
    const std::int64_t inner = element % inner_, row = element / inner_;
    const std::int64_t along = row % whole_[dimension_], outer = row / whole_[dimension_];
    const auto next = std::ranges::upper_bound(begins_, along);
    const std::int64_t begin = *std::prev(next), size = *next - begin;
    return {static_cast<std::size_t>(next - begins_.begin() - 1),
            (outer * size + along - begin) * inner_ + inner};
  }

 private:
  bool fit(const std::vector<Shape>& pieces) const {
    std::int64_t sum = 0;
    for (Shape piece : pieces) {
      if (piece.size() != whole_.size()) return false;
      sum += std::exchange(piece[dimension_], whole_[dimension_]);
      if (piece != whole_) return false;
    }
    return sum == whole_[dimension_];
  }

  Shape whole_;
  std::size_t dimension_ = 0;
  std::int64_t inner_ = 1;
  std::vector<std::int64_t> begins_{0};  // of each piece, and the end of the last
};

const std::byte* at(const StoredBytes& stored, const TraceTensor& tensor, std::int64_t element) {
  return stored.bytes.data() + element * tensor.type.bytes;
}

void count(bool right, const TraceTensor& tensor, std::int64_t element, const auto& text,
           CollectiveResult& result) {
  ++result.of_elements;
  if (right) return;
  if (result.elements++ == 0) result.first = tensor.coordinates(element) + ": " + text();
}

void require_equal_shapes(const std::vector<CollectivePart>& parts,
                          const TraceTensor* CollectivePart::* tensor) {
  for (const CollectivePart& part : parts) {
    if ((part.*tensor)->shape == (parts.front().*tensor)->shape) continue;
    throw NotCompared{"the shapes of the ranks differ"};
  }
}

std::vector<Shape> shapes_of(const std::vector<CollectivePart>& parts,
                             const TraceTensor* CollectivePart::* tensor) {
  std::vector<Shape> shapes;
  for (const CollectivePart& part : parts) shapes.push_back((part.*tensor)->shape);
  return shapes;
}

class Sum {
 public:
  explicit Sum(const std::vector<CollectivePart>& parts) : parts_(parts) {
    const ElementType& type = parts.front().in->type;
    const auto format = rounded_format(type);
    if (!format) throw NotCompared{"sums of " + type.name};
    format_ = *format;
  }

  void add_up(std::int64_t element) {
    sum_ = absolute_ = 0;
    for (const CollectivePart& part : parts_) {
      const double value = element_value(part.in->type, at(part.given, *part.in, element));
      sum_ += value;
      absolute_ += std::abs(value);
    }
    const auto n = static_cast<double>(parts_.size());
    bound_ = format_.unit * (std::abs(sum_) + (n - 2) * absolute_) * (1 + n * format_.unit) +
             (n - 1) * format_.smallest;
  }
  bool is_right(double value) const {
    if (std::isnan(sum_)) return std::isnan(value);
    if (std::isinf(sum_)) return value == sum_;
    return std::abs(value - sum_) <= bound_ || overflows(value);
  }
  std::string text() const { return fmt::format("the sum is {:.9g} +- {:.2g}", sum_, bound_); }

 private:
  // Integers wrap around. Of more than two parts, a sum on the way may be infinite although the
  // whole one is not, and infinities of both signs give NaN.
  bool overflows(double value) const {
    if (format_.unit == 0) return std::abs(sum_) > format_.largest;
    if (parts_.size() > 2) return absolute_ + bound_ > format_.largest && !std::isfinite(value);
    return std::abs(sum_) + bound_ > format_.largest && std::isinf(value) &&
           std::signbit(value) == std::signbit(sum_);
  }

  const std::vector<CollectivePart>& parts_;
  RoundedFormat format_;
  double sum_ = 0, absolute_ = 0, bound_ = 0;
};

// `pieces`: where the results lie; nullopt: each rank has the whole sum.
std::vector<CollectiveResult> check_sum(const std::vector<CollectivePart>& parts,
                                        const std::optional<Pieces>& pieces) {
  std::vector<CollectiveResult> results(parts.size());
  Sum sum(parts);
  const auto check = [&](std::size_t rank, std::int64_t element) {
    const TraceTensor& out = *parts[rank].out;
    const std::byte* const bytes = at(parts[rank].got, out, element);
    const auto text = [&] { return element_text(out.type, bytes) + ", " + sum.text(); };
    count(sum.is_right(element_value(out.type, bytes)), out, element, text, results[rank]);
  };
  for (std::int64_t i = 0; i < parts.front().in->elements(); ++i) {
    sum.add_up(i);
    if (pieces) {
      const Pieces::Place place = (*pieces)(i);
      check(place.rank, place.element);
      continue;
    }
    for (std::size_t rank = 0; rank < parts.size(); ++rank) check(rank, i);
  }
  return results;
}

std::vector<CollectiveResult> check_gathered(const std::vector<CollectivePart>& parts) {
  require_equal_shapes(parts, &CollectivePart::out);
  const Pieces pieces(parts.front().out->shape, shapes_of(parts, &CollectivePart::in));
  std::vector<CollectiveResult> results(parts.size());
  for (std::int64_t i = 0; i < parts.front().out->elements(); ++i) {
    const Pieces::Place place = pieces(i);
    const CollectivePart& from = parts[place.rank];
    const std::byte* const wanted = at(from.given, *from.in, place.element);
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const TraceTensor& out = *parts[rank].out;
      const std::byte* const got = at(parts[rank].got, out, i);
      const auto text = [&] {
        return fmt::format("{}, rank {} of the group gave {}", element_text(out.type, got),
                           place.rank, element_text(from.in->type, wanted));
      };
      const auto size = static_cast<std::size_t>(out.type.bytes);
      count(std::memcmp(got, wanted, size) == 0, out, i, text, results[rank]);
    }
  }
  return results;
}

}  // namespace

std::vector<CollectiveResult> check_collective(const std::string& collective,
                                               const std::vector<CollectivePart>& parts) {
  const std::string& type = parts.front().in->type.name;
  for (const CollectivePart& part : parts) {
    if (part.in->type.name != type || part.out->type.name != type) {
      throw NotCompared{"the dtypes of the parts and results differ"};
    }
  }
  if (collective == "all_gather") return check_gathered(parts);
  if (collective != "all_reduce" && collective != "reduce_scatter") {
    throw NotCompared{"plumb has no such collective"};
  }
  require_equal_shapes(parts, &CollectivePart::in);
  const Shape& whole = parts.front().in->shape;
  if (collective == "reduce_scatter") {
    return check_sum(parts, Pieces(whole, shapes_of(parts, &CollectivePart::out)));
  }
  require_equal_shapes(parts, &CollectivePart::out);
  if (parts.front().out->shape != whole) throw NotCompared{"the sum has another shape"};
  return check_sum(parts, std::nullopt);
}

}  // namespace plumb::trace
