// SPDX-License-Identifier: Apache-2.0
//
// Makes a failing case smaller as long as it fails in the same way. A case is a set of parameter
// values, and each parameter has an order from its plainest value up. Failing need not be monotonic
// in any parameter, so every result is based on cases that really ran.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bisect/search/prober.h"

namespace plumb::bisect {

// A parameter with the order of its values.
struct Knob {
  std::string name;
  std::vector<std::string> words;         // plainest first; empty: the parameter is a number
  std::vector<std::string> others = {};   // further words, less plain than any of `words`
  std::int64_t least = 0;                 // smallest value of a number, and its plainest
  std::vector<std::int64_t> worth_a_try;  // numbers that occur in other cases

  bool is_number() const { return words.empty(); }
  std::string plainest() const;
  // Words that are less plain than the plainest, in the order in which they are tried.
  std::vector<std::string> less_plain() const;
};

// A parameter that lists which parts of a case are kept, by number; "" keeps all.
struct KeepKnob {
  std::string name;
  std::string size;  // the knob with the number of parts
  // The numbers of the parts that the candidate keeps.
  std::function<std::vector<std::int64_t>(const Candidate&)> kept;
};

struct Shrinkable {
  std::vector<Knob> knobs;  // most interesting for a reader first
  // Names of numbers that determine the time of a probe (one case that runs). Small values are
  // tried before everything else.
  std::vector<std::string> sizes;
  std::string seed;  // a knob without an order, of which a few values are tried; "": there is none
  std::vector<KeepKnob> keeps;
  std::optional<Candidate> guess = {};  // a smaller case that probably fails
};

// The smallest case with one parameter changed. If no plainer value of it is possible alone, the
// candidate also has the plainest value of one other parameter.
struct Neighbour {
  std::string knob, value;
  Candidate candidate;
  Said said;
};

struct Shrunk {
  Candidate smallest;
  // One step plainer, for each parameter that is not plainest; and each list of kept parts, with
  // all parts. Those without a verdict, and those that fail alike, are left out.
  std::vector<Neighbour> neighbours;
  // Neighbours that pass because a parameter is less plain. Its value in the smallest case is the
  // plainest that is possible.
  std::vector<Neighbour> needed_plain;
  // The passing neighbour whose parameter changed least, a plainer one if there is one; nullptr:
  // none passes.
  const Neighbour* passing() const;
  // Parameters that were reduced to their plainest value and do not matter: with the original value
  // the smallest case fails too.
  std::vector<std::string> irrelevant;
  bool complete = true;  // false: the search ran out of time
};

// Reduces the case `start`, which must fail.
Shrunk shrink(const Candidate& start, const Shrinkable& subject, Prober& prober);

}  // namespace plumb::bisect
