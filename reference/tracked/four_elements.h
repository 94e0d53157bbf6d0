// SPDX-License-Identifier: Apache-2.0
//
// Sums and products of arrays, four elements at a time, and other passes over whole arrays in which
// a reference spends most of its time. Results have the same bits as one element at a time.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reference/bound.h"
#include "reference/four_doubles.h"

namespace plumb::reference {

using FourBits = std::int64_t __attribute__((vector_size(32)));

// An operand's element, V = double or Four: its centre, the reach of errors in a correct kernel,
// and its largest possible error.
template <class V>
struct UncertainNumber {
  V at = {}, reach = {}, most = {};

  bool is_exact() const { return most == 0; }
};
using UncertainElement = UncertainNumber<double>;

// A result's element. `beyond`: sigma of the part that is not linear in the errors. `is_scaled`:
// the result is its operand times a power of two, which is exact. `own`: largest error of the
// function itself besides one rounding. `own_sigma`: its standard deviation.
template <class V>
struct ChangeOf {
  V value = {}, by_first = {}, by_second = {}, most = {}, beyond = {};
  bool is_scaled = false;
  double own = 0, own_sigma = 0;
};
using LocalChange = ChangeOf<double>;

// error * by, but 0 if either is 0, even if the other is infinite.
inline double scaled_error(double error, double by) {
  return error == 0 || by == 0 ? 0 : error * by;
}

PLUMB_FOR_ANY_TARGET void scale_to(double error, double by, double& to) {
  to = scaled_error(error, by);
}
PLUMB_FOR_ANY_TARGET void scale_to(const Four& error, const Four& by, Four& to) {
  const FourBits none = (error == 0) | (by == 0);
  to = reinterpret_cast<Four>(reinterpret_cast<FourBits>(error * by) & ~none);
}
PLUMB_FOR_ANY_TARGET void magnitude_of(double from, double& to) { to = std::abs(from); }
PLUMB_FOR_ANY_TARGET void smaller_to(const Four& a, const Four& b, Four& to) {
  const FourBits second = b < a;
  to = reinterpret_cast<Four>((reinterpret_cast<FourBits>(a) & ~second) |
                              (reinterpret_cast<FourBits>(b) & second));
}
// Square roots of four non-negative numbers.
PLUMB_FOR_ANY_TARGET void root_of(const Four& from, Four& to) {
#if defined(__x86_64__)
  using Two = double __attribute__((vector_size(16)));
  Two low, high;
  std::memcpy(&low, &from, sizeof(low));
  std::memcpy(&high, reinterpret_cast<const char*>(&from) + sizeof(low), sizeof(high));
  low = _mm_sqrt_pd(low);
  high = _mm_sqrt_pd(high);
  to = Four{low[0], low[1], high[0], high[1]};
#else
  for (int i = 0; i < 4; ++i) to[i] = std::sqrt(from[i]);
#endif
}
PLUMB_FOR_ANY_TARGET void load(const double* from, double& to) { to = *from; }
PLUMB_FOR_ANY_TARGET void store(double from, double* to) { *to = from; }

// a + b
struct SumRule {
  static constexpr bool kBends = false;

  static double value(double x, double y) { return x + y; }
  template <class V>
  PLUMB_FOR_ANY_TARGET static void apply(const UncertainNumber<V>& x, const UncertainNumber<V>& y,
                                         ChangeOf<V>& to) {
    to.value = x.at + y.at;
    to.by_first = V{} + 1;
    to.by_second = V{} + 1;
    to.most = x.most + y.most;
  }
};

// a * b
struct ProductRule {
  static constexpr bool kBends = true;

  static double value(double x, double y) { return x * y; }
  template <class V>
  PLUMB_FOR_ANY_TARGET static void apply(const UncertainNumber<V>& x, const UncertainNumber<V>& y,
                                         ChangeOf<V>& to) {
    V size_x, size_y, of_x, of_y;
    magnitude_of(x.at, size_x);
    magnitude_of(y.at, size_y);
    scale_to(y.most, size_x + x.most, of_y);
    scale_to(x.most, size_y, of_x);
    scale_to(x.reach, y.reach, to.beyond);
    to.value = x.at * y.at;
    to.by_first = y.at;
    to.by_second = x.at;
    to.most = of_y + of_x;
    to.beyond /= 6;
  }
};

// An operand along a line of the result, read with `step` 0 or 1. An exact operand has no error
// pointers.
struct OperandLine {
  const double *at = nullptr, *reach = nullptr, *most = nullptr;
  std::size_t step = 1;
};
// Where the elements of a result are stored. The derivatives by an exact operand and the errors of
// an exact result are null.
struct ResultLine {
  double *value = nullptr, *by_first = nullptr, *by_second = nullptr;
  double *worst = nullptr, *own = nullptr, *beyond = nullptr;
};

// Sets the first `count` elements, a multiple of four, if each is ordinary: far above the flush
// limit, or not rounded at all, or not finite. If `to` has no error pointers, all must be exact.
// Returns false otherwise, and then the written elements are invalid.
bool set_ordinary(SumRule rule, const OperandLine& a, const OperandLine& b, std::size_t count,
                  const ResultLine& to);
bool set_ordinary(ProductRule rule, const OperandLine& a, const OperandLine& b, std::size_t count,
                  const ResultLine& to);

// to[i] = scaled_error(from[i * step], by[i])
void scale_line(const double* from, std::size_t step, const double* by, std::size_t count,
                double* to);
// to[i] += scaled_error(from[i * step], |by[i]|)
void add_scaled_line(const double* from, std::size_t step, const double* by, std::size_t count,
                     double* to);
// to[i] += from[i]^2
void add_squares(const std::vector<double>& from, double* to);
// to[i] = sqrt(to[i])
void take_roots(std::size_t count, double* to);
// to[i] = sqrt(first[i]^2 + second[i]^2)
void add_in_squares(const double* first, const double* second, std::size_t count, double* to);
// to[i] = min(6 to[i], worst[i])
void limit_sigmas(const double* worst, std::size_t count, double* to);

// Rounds numbers to nearest with `digits` significant bits, in a format with fp32's range, while
// every number within most[i] rounds to the same normal number. nullptr: most = 0. Returns how many
// of the first `count` numbers this holds for, a multiple of four. Elements written after these are
// invalid.
std::size_t store_known(int digits, const double* numbers, const double* most, std::size_t count,
                        double* stored);

// Sums of a line, computed in four lanes.
struct LineSums {
  double sum = 0, magnitudes = 0, squares = 0;
};
LineSums line_sums(const double* terms, std::size_t count);
// Sum of sign(value) * effect.
double sum_with_signs(const double* values, const double* effects, std::size_t count);

}  // namespace plumb::reference
