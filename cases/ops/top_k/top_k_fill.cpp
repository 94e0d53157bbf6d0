// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/top_k_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(LogitPattern::count)> kWords = {
    "all_equal",      "two_values",     "few_winners", "low_bits",  "huge",
    "special_values", "threshold_ties", "negative",    "ascending", "descending",
    "signed_zeros",   "few_finite",     "few_nans",    "near_ties", "clusters"};

// The logits of one window. A logit depends on these members and its column alone.
struct Stream {
  std::uint64_t seed;
  std::int64_t length;
  std::int32_t k;
  bool nan_of_both_signs;
  bool bf16;

  std::uint64_t bits(std::int64_t i) const { return random_bits(seed, i); }
  double fraction(std::int64_t i) const { return uniform(mix(seed, 1), i); }
  // A random number in [0, length) for each i.
  std::int64_t any(std::int64_t i) const { return integer(mix(seed, 2), i, 0, length - 1); }
};

float garbage_score(std::int64_t position) {
  switch (position % 3) {
    case 0: return std::numeric_limits<float>::quiet_NaN();
    case 1: return std::numeric_limits<float>::infinity();
    default: return std::numeric_limits<float>::max();
  }
}

float bf16_of(std::uint64_t bits) {
  return static_cast<float>(reference::decode_bf16(static_cast<std::uint16_t>(bits)));
}

// Numbers of adjacent ranks are adjacent bf16 numbers. Ranks begin at -length / 2, negative ranks
// have negative numbers, and the smallest magnitude is 0.5, or less if there are not enough larger
// ones. If `length` is above 65,000, some ranks share a number.
float ranked_bf16(std::int64_t rank, std::int64_t length) {
  constexpr std::int64_t kHalf = 0x3f00, kInfinity = reference::kInfinityBf16;
  const std::int64_t wanted = length / 2 + 1;  // magnitudes
  if (wanted > kInfinity) rank = rank * (kInfinity - 1) / wanted;
  const std::int64_t least = std::clamp<std::int64_t>(kInfinity - wanted, 0, kHalf);
  return rank < 0 ? -bf16_of(least - rank - 1) : bf16_of(least + rank);
}

// Multiplier and offset make i -> (multiplier i + offset) mod length a permutation.
float exact_logit(const Stream& stream, std::int64_t multiplier, std::int64_t i) {
  const auto offset = static_cast<std::int64_t>(mix(stream.seed, 3) % stream.length);
  const std::int64_t rank = (multiplier * i + offset) % stream.length - stream.length / 2;
  return stream.bf16 ? ranked_bf16(rank, stream.length) : static_cast<float>(rank);
}

std::int64_t coprime_multiplier(const Stream& stream) {
  std::int64_t multiplier = 1 + static_cast<std::int64_t>(mix(stream.seed, 4) % stream.length);
  while (std::gcd(multiplier, stream.length) != 1) ++multiplier;
  return multiplier;
}

float real_logit(const Stream& stream, double scale, std::int64_t i) {
  const std::uint64_t kind = stream.bits(i);
  if (kind % 8 == 0) return 0;
  const double outlier = kind % 64 == 1 ? 32 : 1;
  return static_cast<float>(scale * outlier * normal(mix(stream.seed, 5), i));
}

// A NaN. It has the sign asked for only if the row's contract says where -NaN stands.
float nan_logit(const Stream& stream, bool negative, std::uint32_t payload) {
  const bool sign = negative && stream.nan_of_both_signs;
  return std::bit_cast<float>((sign ? 0xffc00000u : 0x7fc00000u) | payload);
}

float special_value(const Stream& stream, std::int64_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::uint64_t bits = stream.bits(i);
  const auto payload = static_cast<std::uint32_t>(bits >> 32 & 0x3fffff);
  switch (bits % 16) {
    case 0: return nan_logit(stream, false, payload);
    case 1: return nan_logit(stream, true, payload);
    case 2: return kInfinity;
    case 3: return -kInfinity;
    case 4: return 0.0f;
    case 5: return -0.0f;
    case 6: return std::bit_cast<float>(payload);
    default: return static_cast<float>(normal(mix(stream.seed, 5), i));
  }
}

float tied_logit(const Stream& stream, std::int64_t i) {
  if (stream.any(i) < stream.k / 2) return static_cast<float>(1000 + stream.fraction(i));
  return stream.bits(i) & 1 ? 1.0f : static_cast<float>(stream.fraction(i) / 2);
}

float near_tie(const Stream& stream, std::int64_t i) {
  const auto base = static_cast<std::uint32_t>(mix(stream.seed, 8));
  const auto step = static_cast<std::uint32_t>(stream.bits(i) % 200);
  // The masks clear a bit of the exponent, so that the number is finite.
  if (stream.bf16) return bf16_of((base >> 16 & 0xfd00U) + step);
  return std::bit_cast<float>((base & 0xfeffff00U) + step);
}

float clustered(const Stream& stream, std::int64_t i) {
  const std::uint64_t bits = mix(stream.seed, 9);
  const std::int64_t places = std::int64_t{1} << bits % 4;
  const std::int64_t period = std::max<std::int64_t>(stream.length / places, 1);
  const std::int64_t width = std::clamp<std::int64_t>(stream.k / 2 / places, 1, period);
  // The winners of a period are at its start, in its middle or at its end.
  const std::int64_t first = static_cast<std::int64_t>(bits / 4 % 3) * (period - width) / 2;
  const std::int64_t at = i % period - first;
  const double fraction = stream.fraction(i);
  return static_cast<float>(at >= 0 && at < width ? 1000 + fraction : fraction);
}

float pattern_logit(const Stream& stream, LogitPattern pattern, std::int64_t i) {
  const std::uint64_t bits = stream.bits(i);
  switch (pattern) {
    case LogitPattern::all_equal: return 1.25f;
    case LogitPattern::two_values: return bits & 1 ? 1.0f : 0.0f;
    case LogitPattern::few_winners:
      return stream.any(i) < 100 ? static_cast<float>(1 + stream.fraction(i)) : 0.0f;
    case LogitPattern::low_bits:
      if (stream.bf16) return bf16_of(0x3f80 | (bits & 0x7f));
      return std::bit_cast<float>(0x3F900000u | static_cast<std::uint32_t>(bits & 0x3ff));
    case LogitPattern::huge:
      return static_cast<float>(
          std::ldexp(bits & 1 ? 65505 : -65505, static_cast<int>(bits >> 58)) *
          (1 + stream.fraction(i)));
    case LogitPattern::special_values: return special_value(stream, i);
    case LogitPattern::threshold_ties: return tied_logit(stream, i);
    case LogitPattern::negative: return static_cast<float>(-1 - 100 * stream.fraction(i));
    case LogitPattern::ascending: return static_cast<float>(i);
    case LogitPattern::descending: return static_cast<float>(-i);
    case LogitPattern::signed_zeros: return bits & 1 ? 0.0f : -0.0f;
    case LogitPattern::few_finite:
      return stream.any(i) < stream.k / 5 ? static_cast<float>(normal(mix(stream.seed, 5), i))
                                          : -std::numeric_limits<float>::infinity();
    case LogitPattern::few_nans:
      return stream.any(i) < stream.k / 4
                 ? nan_logit(stream, bits & 1, static_cast<std::uint32_t>(bits >> 32 & 0x3fffff))
                 : static_cast<float>(normal(mix(stream.seed, 5), i));
    case LogitPattern::near_ties: return near_tie(stream, i);
    case LogitPattern::clusters: return clustered(stream, i);
    case LogitPattern::count: break;
  }
  return 0;
}

// Adversarial rows have the patterns in turn. The seed chooses the first one.
std::optional<LogitPattern> pattern_of(const WindowFill& how, std::int64_t row) {
  if (how.fill == Fill::exact) return std::nullopt;
  if (how.pattern || how.fill == Fill::real) return how.pattern;
  constexpr auto kCount = static_cast<std::uint64_t>(LogitPattern::count);
  return static_cast<LogitPattern>((mix(how.seed, 6) % kCount + row) % kCount);
}

std::int64_t row_stride(const HostTensor& logits) { return logits.spec().strides.front(); }

bool is_bf16(const HostTensor& logits) { return logits.spec().dtype == Dtype::bf16; }

void store(HostTensor& logits, std::int64_t element, float logit) {
  if (is_bf16(logits)) {
    logits.data<std::uint16_t>()[element] = reference::encode_bf16(logit);
  } else {
    logits.data<float>()[element] = logit;
  }
}

void fill_garbage(HostTensor& logits, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < std::min(end, logits.extent()); ++i) {
    store(logits, i, garbage_score(i));
  }
}

}  // namespace

WordParameter pattern_word() {
  return {"pattern",
          {kWords.begin(), kWords.end()},
          "of all rows under the real and the adversarial fill; else each adversarial row has one"};
}

std::optional<LogitPattern> pattern_named(const Row& row) {
  const std::string_view word = row.word("pattern");
  if (word.empty()) return std::nullopt;
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  return static_cast<LogitPattern>(found - kWords.begin());
}

void fill_logits(HostTensor& logits, std::int64_t row, std::int64_t start, std::int64_t end,
                 const WindowFill& how) {
  fill_garbage(logits, row * row_stride(logits), (row + 1) * row_stride(logits));
  if (end <= start) return;
  const Stream stream{mix(how.seed, 64 + row), end - start, how.k, how.nan_of_both_signs,
                      is_bf16(logits)};
  const std::optional<LogitPattern> pattern = pattern_of(how, row);
  const std::int64_t multiplier = coprime_multiplier(stream);
  const double scale = std::ldexp(1, static_cast<int>(mix(stream.seed, 7) % 21) - 10);
  const auto logit = [&](std::int64_t i) {
    if (how.fill == Fill::exact) return exact_logit(stream, multiplier, i);
    return pattern ? pattern_logit(stream, *pattern, i) : real_logit(stream, scale, i);
  };
  const std::int64_t first = row * row_stride(logits);
  for (std::int64_t i = 0; i < stream.length; ++i) {
    store(logits, first + (start + i) * how.column_stride, logit(i));
  }
}

void fill_dead_logits(HostTensor& logits, const Step& step, std::int64_t live) {
  for (std::int64_t row = live; row < logits.rows(); ++row) {
    const std::int64_t begin = row * row_stride(logits);
    fill_garbage(logits, begin + logits.columns(), begin + row_stride(logits));
  }
  fill_dead(logits, live, logits.rows(), step.dead_rows);
}

}  // namespace plumb::cases
