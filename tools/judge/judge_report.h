// SPDX-License-Identifier: Apache-2.0
//
// Text, JSON and JUnit reports of plumb judge about the calls of a trace.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/judge/chain_summary.h"
#include "tools/judge/rank_summary.h"
#include "tools/report.h"
#include "trace/call_place.h"
#include "trace/judge_call.h"

namespace plumb::tools {

struct OpCount {
  std::int64_t calls = 0, passed = 0, failed = 0, not_judged = 0;
  double margin = 0;  // largest error / bound over the passed calls
};

// Calls of an op for which only a sample of rows was judged.
struct SampledCalls {
  std::int64_t calls = 0, rows = 0, judged = 0;
  std::int64_t fewest = 0, of = 0;  // judged and all rows of the call most likely missed
  double chance = 0;                // chance to miss a defect in 1 % of its rows
  double chance_in_all = 1;         // chance to miss a defect that every one of the calls has
};

// Adds up the calls of a trace. They are added in the order in which they ran.
class TraceSummary {
 public:
  explicit TraceSummary(std::string path) : path_(std::move(path)) {}

  // Provenance of a file of the trace. The first file's is kept.
  void describe(const std::map<std::string, std::string>& provenance) {
    if (provenance_.empty()) provenance_ = provenance;
  }

  void add(trace::CallReport call);
  void add(trace::ChainReport chains) { chains_.add(std::move(chains)); }
  void add(trace::RankReport ranks) { ranks_.add(std::move(ranks)); }

  const OpCount& total() const { return total_; }
  // nullptr: no call is wrong.
  const trace::CallReport* first_wrong() const {
    return wrong_.empty() ? nullptr : &wrong_.front();
  }
  // Code 1: a call is wrong, wrote an unexplained NaN, or read other bytes than an earlier call
  // wrote, or ranks do not agree. Code 2: no call was judged or compared with other ranks.
  int exit_code() const;
  // The first wrong call, the first NaN, the table of ops, and the calls that were not judged.
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
  std::map<std::string, OpCount> ops_;           // by op, or by the engine's name for it
  std::map<std::string, SampledCalls> sampled_;  // by op
  std::map<std::string, std::string> profiles_;  // by op: "vllm.toml:12"
  std::map<std::pair<std::string, std::string>, std::int64_t> not_judged_;  // op, reason
  std::vector<trace::CallReport> wrong_;                                    // in order
  std::optional<trace::CallReport> first_non_finite_;
  // By step and rank: a text with one character per call. '.' passed, 'x' failed, '-' not judged, '
  // ' not asked for.
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> timeline_;
  ChainSummary chains_;
  RankSummary ranks_;
};

// "step 3, call 41 of 151, layer 2: rms_norm (RMSNorm.forward), replay 5 of a graph"
std::string place_of(const trace::CallPlace& call);
// "0/3/41": rank, step, number of the call
std::string call_id(const trace::CallPlace& call);
// The failure lines of a wrong call, and the line about an unexplained NaN or infinity, if any.
std::string call_text(const trace::CallReport& call);

}  // namespace plumb::tools
