// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/four_elements.h"

#include <algorithm>
#include <limits>

namespace plumb::reference {

namespace {

constexpr double kLargeF32 = 0x1p127;  // far below the overflow limit

PLUMB_FOR_ANY_TARGET void load_along(const double* from, std::size_t i, std::size_t step,
                                     Four& to) {
  if (step == 0) {
    to = Four{} + *from;
  } else {
    load(from + i, to);
  }
}

PLUMB_FOR_ANY_TARGET bool none_set(const FourBits& bits) {
  return (bits[0] | bits[1] | bits[2] | bits[3]) == 0;
}

PLUMB_FOR_ANY_TARGET void find_held(const Four& value, FourBits& held) {
  using Floats = float __attribute__((vector_size(16)));
  const Four stored = __builtin_convertvector(__builtin_convertvector(value, Floats), Four);
  held = stored == value;
}

template <class Rule>
PLUMB_FOR_ANY_TARGET bool set_exact_four(const OperandLine& a, const OperandLine& b,
                                         std::size_t count, const ResultLine& to) {
  FourBits strange = {};
  for (std::size_t i = 0; i < count; i += 4) {
    UncertainNumber<Four> x, y;
    ChangeOf<Four> change;
    load_along(a.at, i, a.step, x.at);
    load_along(b.at, i, b.step, y.at);
    Rule::apply(x, y, change);
    Four size;
    FourBits held;
    magnitude_of(change.value, size);
    find_held(change.value, held);
    strange |= ~held & (size < kInfinity);
    store(change.value, to.value + i);
  }
  return none_set(strange);
}

PLUMB_FOR_ANY_TARGET void store_where(const FourBits& mask, const Four& from, double* to) {
  store(reinterpret_cast<Four>(reinterpret_cast<FourBits>(from) & mask), to);
}

// Results that are not finite get errors of 0, because nothing is known about their errors.
template <class Rule, bool kFirst, bool kSecond>
PLUMB_FOR_ANY_TARGET bool set_inexact_four(const OperandLine& a, const OperandLine& b,
                                           std::size_t count, const ResultLine& to) {
  FourBits strange = {};
  for (std::size_t i = 0; i < count; i += 4) {
    UncertainNumber<Four> x, y;
    ChangeOf<Four> change;
    load_along(a.at, i, a.step, x.at);
    load_along(b.at, i, b.step, y.at);
    if constexpr (!kFirst) {
      load_along(a.reach, i, a.step, x.reach);
      load_along(a.most, i, a.step, x.most);
    }
    if constexpr (!kSecond) {
      load_along(b.reach, i, b.step, y.reach);
      load_along(b.most, i, b.step, y.most);
    }
    Rule::apply(x, y, change);
    Four size, slope, reach = {}, of_second = {}, honest;
    magnitude_of(change.value, size);
    const FourBits finite = size < kInfinity;
    if constexpr (!kFirst) {
      magnitude_of(change.by_first, slope);
      scale_to(x.reach, slope, reach);
      store_where(finite, change.by_first, to.by_first + i);
    }
    if constexpr (!kSecond) {
      magnitude_of(change.by_second, slope);
      scale_to(y.reach, slope, of_second);
      store_where(finite, change.by_second, to.by_second + i);
    }
    FourBits kept;  // set if operands are exact and fp32 holds the result
    find_held(change.value, kept);
    kept &= (x.most == 0) & (y.most == 0);
    const Four none = {}, rounding = none + kUnitF32;
    const Four unit = reinterpret_cast<Four>(reinterpret_cast<FourBits>(rounding) & ~kept);
    strange |= finite & ~(kept | (size == none) | (size - change.most >= kLeastNormalF32));
    reach += of_second;
    smaller_to(change.most, reach, honest);
    store(change.value, to.value + i);
    store_where(finite, change.most + (size + change.most) * unit, to.worst + i);
    store_where(finite, kUniformSigma * ((size + honest) * unit), to.own + i);
    if constexpr (Rule::kBends && !kFirst && !kSecond) {
      store_where(finite, change.beyond, to.beyond + i);
    }
  }
  return none_set(strange);
}

template <class Rule>
PLUMB_FOR_ANY_TARGET bool set_four(const OperandLine& a, const OperandLine& b, std::size_t count,
                                   const ResultLine& to) {
  const bool first = to.by_first == nullptr, second = to.by_second == nullptr;
  if (to.own == nullptr) return set_exact_four<Rule>(a, b, count, to);
  if (first && second) return set_inexact_four<Rule, true, true>(a, b, count, to);
  if (first) return set_inexact_four<Rule, true, false>(a, b, count, to);
  if (second) return set_inexact_four<Rule, false, true>(a, b, count, to);
  return set_inexact_four<Rule, false, false>(a, b, count, to);
}
template <class Rule>
PLUMB_WIDE_TARGET bool set_wide_four(const OperandLine& a, const OperandLine& b, std::size_t count,
                                     const ResultLine& to) {
  return set_four<Rule>(a, b, count, to);
}
template <class Rule>
bool set_narrow_four(const OperandLine& a, const OperandLine& b, std::size_t count,
                     const ResultLine& to) {
  return set_four<Rule>(a, b, count, to);
}

}  // namespace

bool set_ordinary(SumRule, const OperandLine& a, const OperandLine& b, std::size_t count,
                  const ResultLine& to) {
  return (has_wide_registers() ? set_wide_four<SumRule> : set_narrow_four<SumRule>)(a, b, count,
                                                                                    to);
}
bool set_ordinary(ProductRule, const OperandLine& a, const OperandLine& b, std::size_t count,
                  const ResultLine& to) {
  return (has_wide_registers() ? set_wide_four<ProductRule>
                               : set_narrow_four<ProductRule>)(a, b, count, to);
}

// ---- passes over whole arrays: a loop for 256-bit registers and one for other machines ----

namespace {

PLUMB_FOR_ANY_TARGET double sum_of_lanes(const Four& lanes) {
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

PLUMB_FOR_ANY_TARGET void scale_each(const double* from, std::size_t step, const double* by,
                                     std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four effect, slope, result;
    load_along(from, i, step, effect);
    load(by + i, slope);
    scale_to(effect, slope, result);
    store(result, to + i);
  }
  for (; i < count; ++i) to[i] = scaled_error(from[i * step], by[i]);
}
PLUMB_WIDE_TARGET void wide_scale_each(const double* from, std::size_t step, const double* by,
                                       std::size_t count, double* to) {
  scale_each(from, step, by, count, to);
}

PLUMB_FOR_ANY_TARGET void add_each_scaled(const double* from, std::size_t step, const double* by,
                                          std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four effect, slope, size, result, sum;
    load_along(from, i, step, effect);
    load(by + i, slope);
    magnitude_of(slope, size);
    scale_to(effect, size, result);
    load(to + i, sum);
    store(sum + result, to + i);
  }
  for (; i < count; ++i) to[i] += scaled_error(from[i * step], std::abs(by[i]));
}
PLUMB_WIDE_TARGET void wide_add_each_scaled(const double* from, std::size_t step, const double* by,
                                            std::size_t count, double* to) {
  add_each_scaled(from, step, by, count, to);
}

PLUMB_FOR_ANY_TARGET void add_each_square(const double* from, std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four effect, sum;
    load(from + i, effect);
    load(to + i, sum);
    store(sum + effect * effect, to + i);
  }
  for (; i < count; ++i) to[i] += square(from[i]);
}
PLUMB_WIDE_TARGET void wide_add_each_square(const double* from, std::size_t count, double* to) {
  add_each_square(from, count, to);
}

PLUMB_FOR_ANY_TARGET void take_each_root(std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four number, root;
    load(to + i, number);
    root_of(number, root);
    store(root, to + i);
  }
  for (; i < count; ++i) to[i] = std::sqrt(to[i]);
}
PLUMB_WIDE_TARGET void wide_take_each_root(std::size_t count, double* to) {
  take_each_root(count, to);
}

PLUMB_FOR_ANY_TARGET void add_each_in_squares(const double* first, const double* second,
                                              std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four a, b, root;
    load(first + i, a);
    load(second + i, b);
    root_of(a * a + b * b, root);
    store(root, to + i);
  }
  for (; i < count; ++i) to[i] = std::sqrt(square(first[i]) + square(second[i]));
}
PLUMB_WIDE_TARGET void wide_add_each_in_squares(const double* first, const double* second,
                                                std::size_t count, double* to) {
  add_each_in_squares(first, second, count, to);
}

PLUMB_FOR_ANY_TARGET void limit_each(const double* worst, std::size_t count, double* to) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four most, sigma, limited;
    load(worst + i, most);
    load(to + i, sigma);
    smaller_to(6 * sigma, most, limited);
    store(limited, to + i);
  }
  for (; i < count; ++i) to[i] = std::min(6 * to[i], worst[i]);
}
PLUMB_WIDE_TARGET void wide_limit_each(const double* worst, std::size_t count, double* to) {
  limit_each(worst, count, to);
}

// Rounds away the low bits, ties to even.
PLUMB_FOR_ANY_TARGET void round_four(const Four& number, int dropped, FourBits& to) {
  const FourBits bits = reinterpret_cast<FourBits>(number);
  const std::int64_t half = std::int64_t{1} << (dropped - 1);
  const FourBits odd = (bits >> dropped) & 1;
  to = (bits + (odd + (half - 1))) & -(std::int64_t{1} << dropped);
}

PLUMB_FOR_ANY_TARGET std::size_t store_each_known(int dropped, const double* numbers,
                                                  const double* most, std::size_t count,
                                                  double* stored) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four number, error = {}, size;
    FourBits low, middle, high;
    load(numbers + i, number);
    if (most != nullptr) load(most + i, error);
    magnitude_of(number, size);
    round_four(number - error, dropped, low);
    round_four(number, dropped, middle);
    round_four(number + error, dropped, high);
    const FourBits normal = (size - error >= kLeastNormalF32) & (size < kLargeF32);
    if (!none_set((low ^ middle) | (high ^ middle) | ~normal)) break;
    store(reinterpret_cast<Four>(middle), stored + i);
  }
  return i;
}
PLUMB_WIDE_TARGET std::size_t wide_store_each_known(int dropped, const double* numbers,
                                                    const double* most, std::size_t count,
                                                    double* stored) {
  return store_each_known(dropped, numbers, most, count, stored);
}

PLUMB_FOR_ANY_TARGET void sum_all(const double* terms, std::size_t count, LineSums& sums) {
  Four sum = {}, magnitudes = {}, squares = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four term, size;
    load(terms + i, term);
    magnitude_of(term, size);
    sum += term;
    magnitudes += size;
    squares += term * term;
  }
  for (; i < count; ++i) {
    sum[0] += terms[i];
    magnitudes[0] += std::abs(terms[i]);
    squares[0] += square(terms[i]);
  }
  sums = {sum_of_lanes(sum), sum_of_lanes(magnitudes), sum_of_lanes(squares)};
}
PLUMB_WIDE_TARGET void wide_sum_all(const double* terms, std::size_t count, LineSums& sums) {
  sum_all(terms, count, sums);
}

PLUMB_FOR_ANY_TARGET void sum_signed(const double* values, const double* effects, std::size_t count,
                                     double& total) {
  constexpr std::int64_t kSign = std::numeric_limits<std::int64_t>::min();
  Four sum = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four value, effect;
    load(values + i, value);
    load(effects + i, effect);
    const FourBits sign = reinterpret_cast<FourBits>(value) & kSign;
    const FourBits kept = (value < 0) | (value > 0);
    sum += reinterpret_cast<Four>((reinterpret_cast<FourBits>(effect) ^ sign) & kept);
  }
  for (; i < count; ++i) {
    if (values[i] != 0) sum[0] += std::copysign(1.0, values[i]) * effects[i];
  }
  total = sum_of_lanes(sum);
}
PLUMB_WIDE_TARGET void wide_sum_signed(const double* values, const double* effects,
                                       std::size_t count, double& total) {
  sum_signed(values, effects, count, total);
}

}  // namespace

void scale_line(const double* from, std::size_t step, const double* by, std::size_t count,
                double* to) {
  if (has_wide_registers()) return wide_scale_each(from, step, by, count, to);
  scale_each(from, step, by, count, to);
}

void add_scaled_line(const double* from, std::size_t step, const double* by, std::size_t count,
                     double* to) {
  if (has_wide_registers()) return wide_add_each_scaled(from, step, by, count, to);
  add_each_scaled(from, step, by, count, to);
}

void add_squares(const std::vector<double>& from, double* to) {
  if (has_wide_registers()) return wide_add_each_square(from.data(), from.size(), to);
  add_each_square(from.data(), from.size(), to);
}

void take_roots(std::size_t count, double* to) {
  if (has_wide_registers()) return wide_take_each_root(count, to);
  take_each_root(count, to);
}

void add_in_squares(const double* first, const double* second, std::size_t count, double* to) {
  if (has_wide_registers()) return wide_add_each_in_squares(first, second, count, to);
  add_each_in_squares(first, second, count, to);
}

void limit_sigmas(const double* worst, std::size_t count, double* to) {
  if (has_wide_registers()) return wide_limit_each(worst, count, to);
  limit_each(worst, count, to);
}

std::size_t store_known(int digits, const double* numbers, const double* most, std::size_t count,
                        double* stored) {
  const int dropped = 53 - digits;
  if (has_wide_registers()) return wide_store_each_known(dropped, numbers, most, count, stored);
  return store_each_known(dropped, numbers, most, count, stored);
}

LineSums line_sums(const double* terms, std::size_t count) {
  LineSums sums;
  (has_wide_registers() ? wide_sum_all(terms, count, sums) : sum_all(terms, count, sums));
  return sums;
}

double sum_with_signs(const double* values, const double* effects, std::size_t count) {
  double total = 0;
  (has_wide_registers() ? wide_sum_signed(values, effects, count, total)
                        : sum_signed(values, effects, count, total));
  return total;
}

}  // namespace plumb::reference
