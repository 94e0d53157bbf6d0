// SPDX-License-Identifier: Apache-2.0
//
// A model of every request, computed from the schedule alone: its tokens, how many were accepted,
// and what each cache entry must hold. It checks the plans of the host. Each slot of a cache has a
// tag that says which entry was written there last.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decode/engine/step_inputs.h"
#include "decode/schedule/schedule.h"

namespace plumb::cases {

// Contents of a slot: an entry of a request (the token or the partial state at a position, or a
// numbered compressed state), which depends on all tokens up to there.
struct EntryTag {
  std::uint64_t digest = 0;  // of all tokens up to the entry; 0: slot never written
  std::uint64_t request = 0;
  std::int64_t number = 0;
};

// An entry that comes into a slot.
struct TagWrite {
  std::size_t cache = 0;
  std::int64_t slot = 0;
  EntryTag before, after;
  const char* part = "";  // of the host that has it written: "prompt", "prefix hit", "cache write"
};

// The plan of a fill of a request's caches outside of a step.
struct CacheFill {
  std::uint64_t request = 0;
  device::decode::StepPlan plan;
};

// A wrong part of the host's plan.
struct WrongPlan {
  std::string part;  // "positions", "block_tables", "prefix hit", "block release"
  std::string text;  // one line, with request, position and slot
};

// Rules for a host. A step computes the scheduled tokens at their positions. Each entry that a
// token attends is in the slot that the block table names and was computed from the request's own
// tokens. No entry that a request still needs is overwritten. The host is free to choose the
// blocks, when it gives them back after their last use, and the contents of padding.
class RequestModel {
 public:
  // `geometry` outlives the model.
  explicit RequestModel(const device::decode::Geometry& geometry);

  // Applies the requests that end and come before a step, and the fills of their caches. Returns
  // the first wrong plan.
  std::optional<WrongPlan> change(const ScheduledStep& scheduled,
                                  const std::vector<CacheFill>& fills);
  // Checks the plan of the step's batch, then counts its accepted tokens.
  std::optional<WrongPlan> check(const ScheduledStep& scheduled,
                                 const device::decode::StepPlan& plan);
  // The entries that came into slots since the last call and that their requests still need.
  std::vector<TagWrite> take_writes();
  // Called when a cache had no free block. An error if the requests of the step need fewer blocks
  // than the cache has.
  std::optional<WrongPlan> check_shortage(const ScheduledStep& scheduled) const;

 private:
  static constexpr std::size_t kKinds = device::decode::kCaches;
  struct Story {
    std::uint64_t id = 0;
    std::vector<std::int64_t> tokens;    // keys: accepted tokens, then those of the step
    std::vector<std::uint64_t> digests;  // of all tokens up to each token
    std::int64_t computed = 0, rejections = 0;
    std::int64_t planned_end = 0;                          // length in the plan of the step before
    std::int64_t prefix = 0;                               // tokens of its shared prefix
    std::uint64_t behind = 0;                              // request that owns the prefix; 0: none
    bool is_new = true;                                    // no step has contained the request yet
    std::array<std::vector<std::int64_t>, kKinds> places;  // slot of each entry; -1: none
    std::int64_t end() const { return std::ssize(tokens); }
  };
  // A row of a plan: tokens [first, first + tokens) of a request.
  struct PlanRow {
    Story* story = nullptr;
    std::int64_t row = 0, first_token = 0;  // row and its first token in the plan
    std::int64_t first = 0, tokens = 0;
    bool prefill = false, fills = false;  // fills: outside of a step
    std::int64_t end() const { return first + tokens; }
  };
  // An entry that a token of a row completes, with its planned slot and the block table's slot.
  struct NewEntry {
    const PlanRow& row;
    std::size_t cache = 0;
    std::int64_t number = 0, slot = 0, in_table = 0;
  };
  using Rows = std::vector<PlanRow>;
  using StepPlan = device::decode::StepPlan;

  void grow(Story& story, std::int64_t end);
  void come_behind(const SharedPrefix& one);
  std::optional<WrongPlan> fill(const CacheFill& one);
  std::optional<WrongPlan> check_filled(const ScheduledStep& scheduled) const;
  void accept(const ScheduledStep& scheduled);
  std::map<std::uint64_t, std::int64_t> ends_in(const ScheduledStep& scheduled) const;

  // plan_checks.cpp: rows of a plan.
  std::optional<WrongPlan> check_rows(const Rows& rows, const StepPlan& plan) const;
  std::optional<WrongPlan> check_row(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_shift(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_length(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_token(const PlanRow& row, std::int64_t i,
                                       const StepPlan& plan) const;
  std::optional<WrongPlan> check_packed(const Rows& rows, const StepPlan& plan) const;
  std::optional<WrongPlan> check_prefills(const Rows& rows, const StepPlan& plan) const;

  // entry_checks.cpp: slots that a plan reads and writes.
  std::optional<WrongPlan> check_reads(const Rows& rows, const StepPlan& plan) const;
  std::optional<WrongPlan> check_read(const PlanRow& row, std::size_t cache, std::int64_t number,
                                      std::int64_t slot) const;
  std::optional<WrongPlan> check_writes(const Rows& rows, const StepPlan& plan);
  std::optional<WrongPlan> check_token_write(const PlanRow& row, std::int64_t position,
                                             std::size_t token, std::size_t cache,
                                             const StepPlan& plan);
  std::optional<WrongPlan> check_write(const NewEntry& entry) const;
  void write(const NewEntry& entry);
  std::int64_t in_table(const StepPlan& plan, std::int64_t row, std::size_t cache,
                        std::int64_t number) const;
  std::uint64_t digest_of(const Story& story, std::size_t cache, std::int64_t number) const;
  std::int64_t first_seen(const Story& story, std::size_t cache) const;
  // Upper bound of the blocks that a right host needs for a request before and in a step that ends
  // with `end` tokens of it.
  std::int64_t needed_blocks(std::uint64_t request, std::int64_t end, std::size_t cache) const;
  // Block of the nearest earlier entry in the same page. -1: there is none.
  std::int64_t block_beside(const Story& story, std::size_t cache, std::int64_t number) const;
  // The request that still needs the entry now in this slot. nullptr: none, or it is the same
  // entry.
  const Story* needed_by(const NewEntry& entry) const;
  const EntryTag& tag(std::size_t cache, std::int64_t slot) const;

  const device::decode::Geometry& geometry_;
  std::map<std::uint64_t, Story> stories_;
  std::array<std::vector<EntryTag>, kKinds> tags_;  // by slot
  std::vector<TagWrite> writes_;
};

}  // namespace plumb::cases
