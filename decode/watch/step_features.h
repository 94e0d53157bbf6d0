// SPDX-License-Identifier: Apache-2.0
//
// What the steps of a schedule really did, counted as cases are: a row that is named for something
// that never happens proves nothing.
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
  refilled,  // of which the other had given back those of the window: beside states that are kept
  evicted,   // a block left the window of a request that goes on
  reused,    // a block of one request became another's
  rejected,  // not all tokens of a request were accepted
  moved,     // a request stood in another row of the batch than before
  chunked,   // a chunk of a prompt attended to tokens of the chunk before
  mixed,     // prompts beside requests that decode
  idle       // nobody was there
};
inline constexpr int kFeatures = 9;

// Steps by name; of every feature.
using FeatureCounts = std::map<std::string, std::int64_t, std::less<>>;

class FeatureCounter {
 public:
  explicit FeatureCounter(const device::decode::Geometry& geometry);
  // A step that was taken, with the host's plan of it.
  void note(const ScheduledStep& scheduled, const device::decode::StepPlan& plan);
  const FeatureCounts& counts() const { return counts_; }

 private:
  using Tables = std::array<std::vector<std::int32_t>, device::decode::kCaches>;
  // A request as it was seen last.
  struct SeenRequest {
    std::int64_t computed = 0, prefilled = 0;  // tokens; of which in chunks
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

// Of a row's `named_for`, "shared,evicted": those that never happened, a line each. Throws BadRow
// for an unknown one.
std::vector<std::string> missing_features(const Row& row, const FeatureCounts& counts);

}  // namespace plumb::cases
