// SPDX-License-Identifier: Apache-2.0
//
// Part of plumb judge's report about tensors that several ranks share.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/report.h"
#include "trace/ranks/rank_check.h"

namespace plumb::tools {

class RankSummary {
 public:
  // Replaces an earlier report of the same step, in which ranks were missing.
  void add(trace::RankReport report);

  bool failed() const { return first() != nullptr; }
  bool compared() const { return counts().checked > 0; }
  // Text about the first tensor that does not agree, for the top of the report. "": none.
  std::string failure_text(const Style& style) const;
  // The lines that begin with "ranks: ". "": no call names a shared tensor.
  std::string text() const;
  nlohmann::ordered_json json() const;
  std::string junit() const;  // a test case, or ""

 private:
  struct Counts {
    std::int64_t checked = 0, wrong = 0;
    std::map<std::string, std::int64_t> not_compared;  // comparisons by the reason
  };
  Counts counts() const;
  const trace::RankFinding* first() const;

  std::map<std::int64_t, trace::RankReport> steps_;
};

}  // namespace plumb::tools
