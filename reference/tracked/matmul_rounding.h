// SPDX-License-Identifier: Apache-2.0
//
// Rounding errors of the additions of a matrix product, for each of its elements, in fp32 or in the
// declared matrix unit. Products of short numbers are exact, and so are many of their additions, so
// the errors depend on the bits of the operands.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/matrix_error.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// Positions of the lowest set bits of the numbers in a row of the first operand or a column of the
// second.
class LineBits {
 public:
  static constexpr int kLeast = -80, kPlaces = 128;

  // `error`: largest error of the number.
  void add(double number, double error);
  void add_exact(const double* numbers, std::int64_t count, std::int64_t step);

  int finest() const { return finest_; }    // exponent of the lowest set bit of all numbers
  int longest() const { return longest_; }  // largest number of significant bits, at most 24
  int width() const { return width_; }      // the same without a limit
  int highest() const { return highest_; }  // exponent of the largest number
  int lowest() const { return lowest_; }    // exponent of the smallest number other than 0
  // Share of the numbers whose lowest set bit is 2^(kLeast + place).
  float share_at(int place) const;
  // Places [first_place(), places_end()) hold all numbers. Empty if there is no number.
  int first_place() const { return first_; }
  int places_end() const { return end_; }

 private:
  static std::size_t place_of(int lowest);
  void add_range(int least, int most, int longest);

  int finest_ = 4096, longest_ = 0, width_ = 0, highest_ = -4096, lowest_ = 4096, first_ = kPlaces,
      end_ = 0;
  std::int64_t count_ = 0;
  std::array<std::uint32_t, kPlaces> ends_{};
};

// matrix_error_factors of any shares, for a fixed number of terms. The factors are linear in the
// shares, except for the square of the bias in of_squares.
class UnitErrorFactors {
 public:
  UnitErrorFactors() = default;
  UnitErrorFactors(std::int64_t terms, const Numerics& how);

  SumErrorFactors of(const MatrixTerms& known) const;

 private:
  SumErrorFactors none_, by_rounding_, by_cut_;
  double by_net_ = 0, by_squared_bias_ = 0;
};

// Rounding errors of all elements of a matrix product.
class MatmulRounding {
 public:
  MatmulRounding(std::int64_t terms, const Numerics& how, TermOrder order,
                 std::vector<LineBits> rows, std::vector<LineBits> columns);

  // Error of one element. `most`: sum of the largest errors of its terms.
  MatrixError of(std::size_t row, std::size_t column, const TermSums& sums, double most) const;

 private:
  MatrixError of_fp32(std::size_t row, std::size_t column, const TermSums& sums,
                      double magnitudes) const;
  void add_losses_to(double size, const TermSums& sums, MatrixError& error) const;
  // `subnormal`: largest size that the unit takes a product with a subnormal operand for; 0: no
  // operand is subnormal.
  MatrixError of_unit(std::size_t row, std::size_t column, const TermSums& sums, double magnitudes,
                      double subnormal) const;
  MatrixTerms terms_of_unit(std::size_t row, std::size_t column, const TermSums& sums) const;
  void set_shares();
  // Share of the products whose lowest set bit is below `place`. The bits of row and column are
  // treated as independent. In a unit, a product that lies b bits below the place counts as 2^-b
  // of a product, because it loses no more than itself.
  double share_below(int place, std::size_t row, std::size_t column) const;

  std::int64_t terms_;
  Numerics how_;
  std::vector<LineBits> rows_, columns_;
  // shares_: per row, from its last place to its first. below_: per column, the share below each
  // place, extended on both sides by the width of a row, so that the dot product of both needs no
  // limits.
  std::vector<float> shares_, below_;
  int first_of_rows_ = 0, width_of_rows_ = 0, first_below_ = 0, width_below_ = 0;
  // Factors if no addition of the chains rounds, and their increase if all additions round.
  SumErrorFactors none_round_, by_share_;
  UnitErrorFactors of_unit_;
  MatrixUnit unit_;
  double instructions_ = 1, unlucky_ = 1;
  double place_;  // lowest bit of a sum, relative to the sum
  int place_exponent_ = 0;
};

}  // namespace plumb::reference
