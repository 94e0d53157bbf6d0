// SPDX-License-Identifier: Apache-2.0
//
// The first bad one among things that come one after the other, such as commits, of which some
// cannot say.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

// The question makes no sense as it was asked, or has no answer: one line.
class Undecided : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What may have been the first bad one, if `bad` is bad and `goods` are good, other than `bad`
// itself; the ones that halve them best come first.
using Order = std::function<std::vector<std::string>(const std::string& bad,
                                                     const std::vector<std::string>& goods)>;
// `candidates`: how many are left, with the bad one.
using AskAbout = std::function<Verdict(const std::string& key, std::size_t candidates)>;

struct FirstBad {
  std::string bad;                      // the earliest that is known to be bad
  std::vector<std::string> goods;       // those that are known to be good
  std::vector<std::string> candidates;  // `bad`, if nothing that cannot say stands before it
};

// At most ceil(log2 n) good or bad answers where n are left, if all can say.
FirstBad first_bad(std::string bad, std::vector<std::string> goods, const Order& order,
                   const AskAbout& ask);

// How many answers it still takes, at most, with so many candidates.
int steps_left(std::size_t candidates);

// Of a list, by index: the middle first.
std::vector<std::size_t> halving_order(std::size_t after, std::size_t before);

}  // namespace plumb::bisect
