// SPDX-License-Identifier: Apache-2.0
//
// Which ops make a decode step wrong: those that have to be exchanged for the reference before
// nothing is found any more, and none besides. Whoever asks the questions says how: a watch in a
// process of its own (tools/), or a table in a test.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decode/checks/findings.h"

namespace plumb::bisect {

using Ops = std::set<std::string>;

// Of one watch.
struct OpsAnswer {
  std::vector<cases::Finding> findings;  // in the order of decode/watch/watch.h
  std::string died;                      // how its process ended, if before there was a result
  bool clean() const { return findings.empty() && died.empty(); }
};

struct OpsQuestions {
  // The steps with these ops exchanged.
  std::function<OpsAnswer(const Ops& exchanged, const std::string& why)> watch;
  // What the same steps end with: the live rows of all of them, as numbers.
  std::function<std::vector<float>(const Ops& exchanged)> results;
  // A decision, in a sentence.
  std::function<void(const std::string& text)> note = [](const std::string&) {};
};

struct Culprit {
  std::string op;
  std::string call, text;  // of its first finding while it alone is not exchanged
  std::int64_t step = 0;
  std::string hidden_by;  // the op whose exchange made it show; "": it shows at once
};

// Two culprits with both of which the results are right, or nearer than with one. Errors are
// relative to the results with both exchanged.
struct Cancelling {
  std::string one, other;
  double both = 0, one_alone = 0, other_alone = 0;  // left in
};

struct OpsReport {
  enum class Conclusion {
    passes,     // nothing is found in the first place
    ops,        // the culprits
    not_an_op,  // something is left with every op exchanged: inputs, metadata, graphs, order
    undecided
  };
  Conclusion kind = Conclusion::undecided;
  std::vector<Culprit> culprits;       // beside what is left, too
  std::optional<cases::Finding> left;  // the first one with every op exchanged
  std::vector<Cancelling> cancelling;
  std::string why;  // undecided
};

// `ops`: all that can be exchanged.
OpsReport search_ops(const Ops& ops, const OpsQuestions& ask);

// "step 0, hc_head (final head), reference: out: …"
std::string text_of(const cases::Finding& finding);
std::string joined(const Ops& ops);  // "hc_head, rms_norm"; "no op"

}  // namespace plumb::bisect
