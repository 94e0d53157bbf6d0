// SPDX-License-Identifier: Apache-2.0
//
// Part of plumb judge's report about chains: calls that read the outputs of other calls.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/report.h"
#include "trace/chain_check.h"

namespace plumb::tools {

class ChainSummary {
 public:
  void add(trace::ChainReport report);

  bool failed() const { return first_certain_.has_value(); }
  // Text about the first broken chain of a complete step, for the top of the report. "": none.
  std::string failure_text(const Style& style) const;
  // The line or two that begin with "chains: ". "": no call read the output of another one.
  std::string text() const;
  nlohmann::ordered_json json() const;
  std::string junit() const;  // a test case, or ""

 private:
  std::int64_t checked_ = 0, broken_ = 0, certain_broken_ = 0;
  std::optional<trace::BrokenChain> first_certain_, first_uncertain_;
  std::vector<std::pair<trace::BrokenChain, bool>> found_;  // second: certain to be broken
};

}  // namespace plumb::tools
