// SPDX-License-Identifier: Apache-2.0
//
// A model of every request, computed from the schedule alone: its tokens, which of them were
// accepted, and what each cache entry has to hold. It checks what the host plans. Every slot of a
// cache has a tag, which says what was written there last.
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

// What a slot holds: the entry of a request (its token at a position, or its compressed state of a
// number), made of all tokens up to there.
struct EntryTag {
  std::uint64_t digest = 0;  // of these tokens; 0: nothing was written
  std::uint64_t request = 0;
  std::int64_t number = 0;
};

// A plan by which the caches of a request were filled outside of a step.
struct CacheFill {
  std::uint64_t request = 0;
  device::decode::StepPlan plan;
};

// A part of the host that is wrong.
struct WrongPlan {
  std::string part;  // "positions", "block_tables", "prefix hit", "block release"
  std::string text;  // one line, with request, position and slot
};

// What is demanded of a host: that a step computes the scheduled tokens at their positions, that
// each entry that a token attends holds what the request's own tokens give and is where the block
// table says, and that no entry that some request still needs is overwritten. Which blocks a
// request gets, when blocks go back after their last use, and what padding holds is the host's
// choice.
class RequestModel {
 public:
  // The geometry outlives it.
  explicit RequestModel(const device::decode::Geometry& geometry);

  // Requests end and come before a step, whose caches are filled by these plans. The first wrong
  // one.
  std::optional<WrongPlan> change(const ScheduledStep& scheduled,
                                  const std::vector<CacheFill>& fills);
  // The plan of the step's batch. Its tokens then count as far as they were accepted.
  std::optional<WrongPlan> check(const ScheduledStep& scheduled,
                                 const device::decode::StepPlan& plan);
  // A cache had no block left. Wrong if the requests of the step need fewer than there are.
  std::optional<WrongPlan> check_shortage(const ScheduledStep& scheduled) const;

 private:
  static constexpr std::size_t kKinds = device::decode::kCaches;
  struct Story {
    std::uint64_t id = 0;
    std::vector<std::int64_t> tokens;    // keys; behind the accepted ones those of the step
    std::vector<std::uint64_t> digests;  // of the tokens up to each
    std::int64_t computed = 0, rejections = 0;
    std::int64_t planned_end = 0;                          // length in the plan of the step before
    std::int64_t prefix = 0;                               // tokens that it came with
    std::uint64_t behind = 0;                              // whose prefix that is; 0: nobody's
    bool is_new = true;                                    // no step has had it
    std::array<std::vector<std::int64_t>, kKinds> places;  // slot of each entry; -1: none
    std::int64_t end() const { return std::ssize(tokens); }
  };
  // A row of a plan: tokens [first, first + tokens) of a request.
  struct PlanRow {
    Story* story = nullptr;
    std::int64_t row = 0, first_token = 0;  // in the plan
    std::int64_t first = 0, tokens = 0;
    bool prefill = false;
    std::int64_t end() const { return first + tokens; }
  };
  // A token of a row, which completes entry `number` of a cache.
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

  // plan_checks.cpp: what a plan says of its rows.
  std::optional<WrongPlan> check_rows(const Rows& rows, const StepPlan& plan) const;
  std::optional<WrongPlan> check_row(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_shift(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_length(const PlanRow& row, const StepPlan& plan) const;
  std::optional<WrongPlan> check_token(const PlanRow& row, std::int64_t i,
                                       const StepPlan& plan) const;
  std::optional<WrongPlan> check_packed(const Rows& rows, const StepPlan& plan) const;
  std::optional<WrongPlan> check_prefills(const Rows& rows, const StepPlan& plan) const;

  // entry_checks.cpp: where entries are read and written.
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
  // Block of the entries beside this one. -1: there are none.
  std::int64_t block_beside(const Story& story, std::size_t cache, std::int64_t number) const;
  // Another entry that this slot holds and that a request still needs.
  const Story* needed_by(const NewEntry& entry) const;
  const EntryTag& tag(std::size_t cache, std::int64_t slot) const;

  const device::decode::Geometry& geometry_;
  std::map<std::uint64_t, Story> stories_;
  std::array<std::vector<EntryTag>, kKinds> tags_;  // by slot
};

}  // namespace plumb::cases
