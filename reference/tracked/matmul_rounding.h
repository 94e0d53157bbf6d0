// SPDX-License-Identifier: Apache-2.0
//
// What the additions of a matrix product lose, for each of its elements: in fp32, or in the matrix
// unit that the numerics declare. Products of short numbers are exact, and many of their additions
// are as well, so the bits of the operands count.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/matrix_error.h"

namespace plumb::reference {

// Where the bits of numbers end: those of a row of the first operand, or of a column of the second.
class LineBits {
 public:
  static constexpr int kLeast = -80, kPlaces = 128;

  // `error`: the most that the number may be off.
  void add(double number, double error);
  void add_exact(const double* numbers, std::int64_t count, std::int64_t step);

  int finest() const { return finest_; }    // place of the lowest bit of all
  int longest() const { return longest_; }  // most significant bits, at most 24
  // Of its numbers, those that end at kLeast + place.
  float share_at(int place) const;
  // Places from the first one with a number to behind the last one; none without a number.
  int first_place() const { return first_; }
  int places_end() const { return end_; }

 private:
  static std::size_t place_of(int lowest);
  void add_range(int least, int most, int longest);

  int finest_ = 4096, longest_ = 0, first_ = kPlaces, end_ = 0;
  std::int64_t count_ = 0;
  std::array<std::uint32_t, kPlaces> ends_{};
};

// The roundings of all elements of a product of lines.
class MatmulRounding {
 public:
  MatmulRounding(std::int64_t terms, const Numerics& how, std::vector<LineBits> rows,
                 std::vector<LineBits> columns);

  // Of one element. `most`: sum of the largest errors of the terms.
  MatrixError of(std::size_t row, std::size_t column, const TermSums& sums, double most) const;

 private:
  MatrixError of_fp32(std::size_t row, std::size_t column, const TermSums& sums,
                      double magnitudes) const;
  MatrixError of_unit(int product_bits, const TermSums& sums, double magnitudes) const;
  void set_shares();
  // Share of the products whose lowest bit is below `place`, as if the bits of the row said nothing
  // about those of the column.
  double share_below(int place, std::size_t row, std::size_t column) const;

  std::int64_t terms_;
  Numerics how_;
  std::vector<LineBits> rows_, columns_;
  // Of each row, from its last place to its first one. Of each column, the shares that are below
  // the places, continued on both sides by the width of a row, so that a sum of products of both
  // needs no limits.
  std::vector<float> shares_, below_;
  int first_of_rows_ = 0, width_of_rows_ = 0, first_below_ = 0, width_below_ = 0;
  SumErrorFactors none_round_, by_share_;  // if no addition of the chains rounds; more if all do
  double place_;                           // of the lowest bit of a sum, as a part of it
  int place_exponent_ = 0;
};

}  // namespace plumb::reference
