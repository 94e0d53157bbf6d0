// SPDX-License-Identifier: Apache-2.0
//
// What plumb judge prints and writes of the calls of a trace.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/judge/chain_summary.h"
#include "tools/report.h"
#include "trace/call_place.h"
#include "trace/judge_call.h"

namespace plumb::tools {

struct OpCount {
  std::int64_t calls = 0, passed = 0, failed = 0, not_judged = 0;
  double margin = 0;  // largest error / bound of the calls that passed
};

// Calls of an op that were judged by a sample of their rows.
struct SampledCalls {
  std::int64_t calls = 0, rows = 0, judged = 0;
  std::int64_t fewest = 0, of = 0;  // rows of the call with the greatest chance of a miss
  double chance = 0;                // of missing a defect in 1 % of its rows
  double chance_in_all = 1;         // of missing a defect that each of the calls has
};

// Adds up the calls of a trace in the order in which they happened.
class TraceSummary {
 public:
  explicit TraceSummary(std::string path) : path_(std::move(path)) {}

  // Of a file of the trace: the first one counts.
  void describe(const std::map<std::string, std::string>& provenance) {
    if (provenance_.empty()) provenance_ = provenance;
  }

  void add(trace::CallReport call);
  void add(trace::ChainReport chains) { chains_.add(std::move(chains)); }

  const OpCount& total() const { return total_; }
  // Null: none is wrong.
  const trace::CallReport* first_wrong() const {
    return wrong_.empty() ? nullptr : &wrong_.front();
  }
  // 1: a call is wrong, wrote a NaN that nothing explains, or read other bytes than a call wrote.
  // 2: no call was judged.
  int exit_code() const;
  // The first wrong call, the first NaN, the table of ops, and what was not judged.
  std::string text(const Style& style) const;
  std::string json(const std::optional<Interruption>& interruption) const;
  std::string junit() const;

 private:
  std::string not_judged_text() const;
  std::string sampled_text() const;
  std::string profiles_text() const;
  std::string table_text(const Style& style) const;

  std::string path_;
  std::map<std::string, std::string> provenance_;
  OpCount total_;
  std::map<std::string, OpCount> ops_;           // by op, or by the engine's name
  std::map<std::string, SampledCalls> sampled_;  // by op
  std::map<std::string, std::string> profiles_;  // by op: "vllm.toml:12"
  std::map<std::pair<std::string, std::string>, std::int64_t> not_judged_;  // op, reason
  std::vector<trace::CallReport> wrong_;                                    // in order
  std::optional<trace::CallReport> first_non_finite_;
  // Of each step and rank a character per call: '.' passed, 'x' failed, '-' not judged, ' ' not
  // asked for.
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> timeline_;
  ChainSummary chains_;
};

// "step 3, call 41 of 151, layer 2: rms_norm (RMSNorm.forward), replay 5 of a graph"
std::string place_of(const trace::CallPlace& call);
// "0/3/41": rank, step, number of the call
std::string call_id(const trace::CallPlace& call);
// A wrong call with all that is known of it.
std::string call_text(const trace::CallReport& call);

}  // namespace plumb::tools
