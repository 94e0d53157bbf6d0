// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON report of plumb judge --against.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/report.h"
#include "trace/call_pair.h"
#include "trace/match_calls.h"

namespace plumb::tools {

// Calls or rows that read equal bits and wrote different ones.
struct DifferentPair {
  trace::CallPlace a, b;
  bool whole = true;  // whole calls; else the rows below
  std::vector<cases::RowPair> rows;
  trace::PairReport report;

  bool beyond() const { return report.beyond > 0; }
  bool judged() const { return report.not_judged.empty(); }
};

// Counts of one op. The unit is a matched call, or a matched row of calls that differ in other
// rows.
struct MatchCount {
  std::int64_t calls = 0, rows = 0;  // matched ones
  std::int64_t same = 0, within = 0, beyond = 0, not_judged = 0;
  std::int64_t carried = 0, only_a = 0, only_b = 0;  // in calls
};

class AgainstReport {
 public:
  AgainstReport(const trace::TraceOutline& a, const trace::TraceOutline& b) : a_(a), b_(b) {}

  void count(const trace::Matching& matching);
  // Pairs are added in the order of A.
  void add(DifferentPair pair);

  std::int64_t matched() const { return total_.calls + total_.rows; }
  std::int64_t not_judged() const { return total_.not_judged; }
  // Code 1: a difference is larger than two right results may have, or a result is wrong. Code 2:
  // nothing is matched, or a difference could not be judged.
  int exit_code() const;
  std::string text(const Style& style) const;
  std::string json(const std::string& path_a, const std::string& path_b) const;

 private:
  std::string table_text(const Style& style) const;
  std::string carried_text() const;

  const trace::TraceOutline &a_, &b_;
  MatchCount total_;
  std::map<std::string, MatchCount> ops_;
  std::vector<DifferentPair> different_;
  std::optional<std::size_t> first_beyond_;
  std::optional<trace::CarriedCall> first_carried_;
};

}  // namespace plumb::tools
