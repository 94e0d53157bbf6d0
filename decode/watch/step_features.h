// SPDX-License-Identifier: Apache-2.0
//
// Counts what the steps of a schedule did. If the steps never do what a row is named for, the row
// tests nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cases/tables/row.h"
#include "decode/engine/step_inputs.h"
#include "decode/schedule/schedule.h"

namespace plumb::cases {

enum class Feature {
  shared,    // a request came with the blocks of another's prefix
  refilled,  // shared, and window blocks that the other had given back were filled again
  evicted,   // a block left the window of a request that goes on
  reused,    // a block of one request became another's
  rejected,  // some tokens of a request were rejected
  moved,     // a request was in another row of the batch than before
  chunked,   // a chunk of a prompt attended tokens of an earlier chunk
  mixed,     // prompts beside requests that decode
  idle       // the step had no request
};
inline constexpr int kFeatures = 9;

// Number of steps by feature name, for all features.
using FeatureCounts = std::map<std::string, std::int64_t, std::less<>>;

class FeatureCounter {
 public:
  explicit FeatureCounter(const device::decode::Geometry& geometry);
  // Notes a step that was run, with the host's plan.
  void note(const ScheduledStep& scheduled, const device::decode::StepPlan& plan);
  const FeatureCounts& counts() const { return counts_; }

 private:
  using Tables = std::array<std::vector<std::int32_t>, device::decode::kCaches>;
  // State of a request in its latest step.
  struct SeenRequest {
    std::int64_t computed = 0, prefilled = 0;  // tokens; prefilled: those of chunks
    std::int64_t row = -1;
    std::array<std::int64_t, device::decode::kCaches> shared = {};  // blocks
    Tables tables = {};
  };
  using Happened = std::array<bool, kFeatures>;

  void come(const ScheduledStep& scheduled, Happened& now);
  void note_blocks(std::uint64_t id, const Tables& tables, Happened& now);
  void note_row(const device::decode::Scheduled& one, std::int64_t row, Happened& now);

  const device::decode::Geometry& geometry_;
  std::map<std::uint64_t, SeenRequest> seen_;
  std::array<std::unordered_map<std::int32_t, std::uint64_t>, device::decode::kCaches> owners_;
  FeatureCounts counts_;
};

// One line per feature of the row's `named_for` ("shared,evicted") that never happened. Throws
// BadRow for an unknown feature.
std::vector<std::string> missing_features(const Row& row, const FeatureCounts& counts);

}  // namespace plumb::cases
