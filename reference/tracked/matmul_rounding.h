// SPDX-License-Identifier: Apache-2.0
//
// What the additions of a matrix product lose, for each of its elements: in fp32, or in the matrix
// unit that the numerics declare. Products of short numbers are exact, and many of their additions
// are as well, so the bits of the operands count.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/bound.h"
#include "reference/matrix_error.h"

namespace plumb::reference {

// Where the bits of numbers end: those of a row of the first operand, or of a column of the second.
class LineBits {
 public:
  // `error`: the most that the number may be off.
  void add(double number, double error);
  // After the last number.
  void finish();

  int finest() const { return finest_; }    // place of the lowest bit of all
  int longest() const { return longest_; }  // most significant bits, at most 24
  // Share of the products of numbers of two lines whose lowest bit is below `place`, as if the bits
  // of one said nothing about those of the other.
  double share_below(int place, const LineBits& other) const;

 private:
  static constexpr int kLeast = -80, kPlaces = 128;

  int finest_ = 4096, longest_ = 0;
  double count_ = 0;
  std::array<double, kPlaces> shares_{};     // of the numbers that end at each place
  std::array<double, kPlaces + 1> below_{};  // of those that end below
  std::vector<std::pair<int, double>> found_;
};

class MatmulRounding {
 public:
  MatmulRounding(std::int64_t terms, const Numerics& how);

  // Of one element. `most`: sum of the largest errors of the terms.
  MatrixError of(const LineBits& a, const LineBits& b, const TermSums& sums, double most) const;

 private:
  MatrixError of_fp32(const LineBits& a, const LineBits& b, const TermSums& sums,
                      double magnitudes) const;
  MatrixError of_unit(const LineBits& a, const LineBits& b, const TermSums& sums,
                      double magnitudes) const;

  std::int64_t terms_;
  Numerics how_;
  SumErrorFactors all_round_, none_round_;  // if all additions of the chains round, and if none do
  double place_;                            // of the lowest bit of a sum, as a part of it
};

}  // namespace plumb::reference
