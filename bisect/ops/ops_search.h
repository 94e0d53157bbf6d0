// SPDX-License-Identifier: Apache-2.0
//
// Finds the ops that make a decode step wrong: the minimal set that must be replaced by the
// reference until nothing is found any more. The caller supplies the questions: a watch in a
// separate process (tools/), or a table in a test.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decode/checks/findings.h"

namespace plumb::bisect {

using Ops = std::set<std::string>;

// Result of one watch.
struct OpsAnswer {
  std::vector<cases::Finding> findings;  // in the order defined by decode/watch/watch.h
  std::string died;                      // how the process ended, if it ended before a result
  std::string skipped;                   // why the steps could not be judged
  bool clean() const { return findings.empty() && died.empty(); }
};

struct OpsQuestions {
  // Watches the steps (runs them with all detectors) with these ops replaced by the reference.
  std::function<OpsAnswer(const Ops& exchanged, const std::string& why)> watch;
  // Outputs of the same steps: the live rows of all of them, as numbers.
  std::function<std::vector<float>(const Ops& exchanged)> results;
  // Receives each decision of the search as a sentence.
  std::function<void(const std::string& text)> note = [](const std::string&) {};
};

struct Culprit {
  std::string op;
  std::string call, text;  // of its first finding when it alone is not replaced
  std::int64_t step = 0;
  std::string hidden_by;  // the op whose replacement made this one show; "": it shows at once
};

// Two culprits whose errors cancel: with both unreplaced the results are closer to right than with
// only one. Errors are relative to the results with both replaced.
struct Cancelling {
  std::string one, other;
  // Errors of the results with both ops unreplaced, or with only one of them.
  double both = 0, one_alone = 0, other_alone = 0;
};

struct OpsReport {
  enum class Conclusion {
    passes,     // nothing is found even without replacements
    ops,        // the culprits were found
    not_an_op,  // findings remain with every op replaced: inputs, metadata, graphs, order
    undecided
  };
  Conclusion kind = Conclusion::undecided;
  std::vector<Culprit> culprits;       // may also be set with not_an_op
  std::optional<cases::Finding> left;  // first finding with every op replaced
  std::vector<Cancelling> cancelling;
  std::string why;  // reason, if undecided
};

// Searches among `ops`, which are all ops that can be replaced.
OpsReport search_ops(const Ops& ops, const OpsQuestions& ask);

// A finding as text: "step 0, hc_head (final head), reference: out: …".
std::string text_of(const cases::Finding& finding);
std::string joined(const Ops& ops);  // "hc_head, rms_norm"; "no op"

}  // namespace plumb::bisect
