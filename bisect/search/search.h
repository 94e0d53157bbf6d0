// SPDX-License-Identifier: Apache-2.0
//
// Finds the first bad element of an ordered sequence, such as commits, in which some elements have
// no verdict.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

// The question makes no sense, or has no answer. The message is one line.
class Undecided : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Elements that may be the first bad one if `bad` is bad and `goods` are good, without `bad`.
// Elements that split them most evenly come first.
using Order = std::function<std::vector<std::string>(const std::string& bad,
                                                     const std::vector<std::string>& goods)>;
// `candidates`: number of remaining candidates, including the bad one.
using AskAbout = std::function<Verdict(const std::string& key, std::size_t candidates)>;

struct FirstBad {
  std::string bad;                      // earliest element known to be bad
  std::vector<std::string> goods;       // elements known to be good
  std::vector<std::string> candidates;  // `bad`, and elements without a verdict before it
};

// Needs at most ceil(log2 n) answers for n candidates, if every element has a verdict.
FirstBad first_bad(std::string bad, std::vector<std::string> goods, const Order& order,
                   const AskAbout& ask);

// Upper limit of the remaining answers for so many candidates.
int steps_left(std::size_t candidates);

// Indices between `after` and `before`, the middle first.
std::vector<std::size_t> halving_order(std::size_t after, std::size_t before);

}  // namespace plumb::bisect
