// SPDX-License-Identifier: Apache-2.0
//
// Makes a failing case smaller as long as it still fails in the same way. A case is the values of
// its parameters; each has an order from its plainest value up. Which of them fail need not be
// monotonic in any: nothing is taken for granted that was not asked.
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

// A parameter, and what is plainer than what.
struct Knob {
  std::string name;
  std::vector<std::string> words;         // the plainest first; none: it is a number
  std::int64_t least = 0;                 // of a number, and its plainest
  std::vector<std::int64_t> worth_a_try;  // numbers that other cases have

  bool is_number() const { return words.empty(); }
  std::string plainest() const;
};

// A knob that lists what is kept of a case, by numbers; "" keeps all.
struct KeepKnob {
  std::string name;
  std::string size;  // the knob that says how many there are to keep some of
  // The numbers of all that is kept now.
  std::function<std::vector<std::int64_t>(const Candidate&)> kept;
};

struct Shrinkable {
  std::vector<Knob> knobs;  // the ones that matter to a reader first
  // Numbers that the time of a probe grows with: small ones are tried before anything else.
  std::vector<std::string> sizes;
  std::string seed;  // a knob without an order, of which a few values are tried; "": none
  std::vector<KeepKnob> keeps;
  std::optional<Candidate> guess = {};  // smaller than the start, and likely to fail
};

// A parameter of the smallest case, moved to the next plainer value.
struct Neighbour {
  std::string knob, value;
  Candidate candidate;
  Said said;
};

struct Shrunk {
  Candidate smallest;
  std::vector<Neighbour> neighbours;  // of every parameter that can still be moved
  const Neighbour* passing() const;   // the one that is moved least; nullptr: none passes
  // Parameters that were moved to their plainest value, and with their first one fail as well.
  std::vector<std::string> irrelevant;
  bool complete = true;  // false: the time was over
};

// The start must fail.
Shrunk shrink(const Candidate& start, const Shrinkable& subject, Prober& prober);

}  // namespace plumb::bisect
