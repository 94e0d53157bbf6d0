// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/match.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plumb::cases {

namespace {

// Two right values of different devices may differ by kUlps times this fraction of the larger
// value. For fp32 the fraction is far above an ulp, because sums in another order differ by many
// ulps.
constexpr double kUlps = 4;
constexpr double kBf16Ulp = 0x1p-8, kF32Ulp = 0x1p-16;

bool is_float(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f32; }

class ValueComparison {
 public:
  ValueComparison(const HostTensor& like, Closeness closeness)
      : dtype_(like.spec().dtype),
        size_(size_of(dtype_)),
        exact_(closeness == Closeness::bits || !is_float(dtype_)) {}

  // True if elements [first, last) are equal bit for bit.
  bool identical(const HostTensor& a, const HostTensor& b, std::int64_t first,
                 std::int64_t last) const {
    const std::size_t begin = static_cast<std::size_t>(first) * size_;
    return std::memcmp(a.bytes().data() + begin, b.bytes().data() + begin,
                       static_cast<std::size_t>(last - first) * size_) == 0;
  }
  bool same(const HostTensor& a, std::int64_t i, const HostTensor& b, std::int64_t j) const {
    const auto* left = a.bytes().data() + static_cast<std::size_t>(i) * size_;
    const auto* right = b.bytes().data() + static_cast<std::size_t>(j) * size_;
    if (std::memcmp(left, right, size_) == 0) return true;
    if (exact_) return false;
    const double x = value(left), y = value(right);
    const double ulp = dtype_ == Dtype::bf16 ? kBf16Ulp : kF32Ulp;
    return (std::isnan(x) && std::isnan(y)) ||
           std::abs(x - y) <= kUlps * ulp * std::max(std::abs(x), std::abs(y));
  }

 private:
  double value(const std::byte* at) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, size_);
    if (dtype_ == Dtype::bf16) bits <<= 16;
    float decoded = 0;
    std::memcpy(&decoded, &bits, sizeof decoded);
    return decoded;
  }

  Dtype dtype_;
  std::size_t size_;
  bool exact_;
};

constexpr double kOfManyAlike = 0.9;
constexpr std::int64_t kFew = 4;
constexpr std::int64_t kAtOnce = 128;  // elements

}  // namespace

Match& Match::operator+=(const Match& more) {
  wrong += more.wrong;
  explained += more.explained;
  invented += more.invented;
  by_chance += more.by_chance;
  return *this;
}

double Match::score() const {
  if (explained == 0) return 0;
  const double share = static_cast<double>(explained) / static_cast<double>(wrong + invented);
  const double chance = chance_share();
  if (is_alike()) return share;
  return std::max(0.0, (share - chance) / (1 - chance));
}

double Match::chance_share() const {
  return wrong == 0 ? 0 : static_cast<double>(by_chance) / static_cast<double>(wrong + invented);
}

bool Match::is_few() const { return wrong < kFew; }

bool Match::is_alike() const { return chance_share() >= kOfManyAlike; }

Match match(const HostTensor& observed, const HostTensor& right, const HostTensor& hypothesis,
            Closeness closeness) {
  Match result;
  if (observed.bytes() == right.bytes() && hypothesis.bytes() == right.bytes()) return result;
  const ValueComparison compare(observed, closeness);
  const std::int64_t elements = observed.extent();
  // Distance to the same column of the next row, or to the next column if there is one row.
  const std::int64_t beside = observed.rows() > 1 ? elements / observed.rows() : 1;
  for (std::int64_t i = 0; i < elements; ++i) {
    // Fast path: most of a tensor is right, also under a hypothesis.
    if (i % kAtOnce == 0) {
      const std::int64_t last = std::min(i + kAtOnce, elements);
      if (compare.identical(observed, right, i, last) &&
          compare.identical(hypothesis, right, i, last)) {
        i = last - 1;
        continue;
      }
    }
    if (compare.same(observed, i, right, i)) {
      result.invented += !compare.same(hypothesis, i, right, i);
      continue;
    }
    ++result.wrong;
    result.explained += compare.same(observed, i, hypothesis, i);
    const std::int64_t there = (i + beside) % elements;
    result.by_chance += !compare.same(hypothesis, there, right, there) &&
                        compare.same(observed, i, hypothesis, there);
  }
  return result;
}

}  // namespace plumb::cases
