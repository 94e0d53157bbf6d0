// SPDX-License-Identifier: Apache-2.0
//
// Faults of the host's own bookkeeping: lengths, positions, slots, block tables, prefix hits, block
// release. Every kernel call is right for the data that it gets.
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"
#include "faults/decode/request_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

constexpr ScheduleShape kPrefixes{Traffic::prefix, Lengths::equal, 8, 4, 1};
constexpr ScheduleShape kReplaced{Traffic::replace, Lengths::mixed, 6, 4, 1};
constexpr ScheduleShape kRejecting{Traffic::steady, Lengths::mixed, 4, 4, 1, Acceptance::some};

// V4 that frees window blocks, and V4 with draft tokens.
DecodeSetup freeing_window(DecodeSetup setup) {
  setup.geometry.frees_window = true;
  return setup;
}
DecodeSetup with_draft_tokens(DecodeSetup setup) {
  setup.geometry = device::decode::small_geometry(4, 3, 48);
  setup.geometry.capture_sizes = {4, 16};
  setup.geometry.drafter = true;
  return setup;
}

template <class Policy>
DecodeFault fault(std::string name, std::string stands_for, std::string part,
                  const ScheduleShape& schedule, const Inject& where = nullptr) {
  const Inject inject = policy<Policy>(&Policies::requests, GraphMode::full);
  return {std::move(name), "hazards " + std::move(stands_for),  std::move(part), Detector::history,
          Detector::eager,  // an eager step uses the same wrong plan
          schedule,        where ? both(inject, where) : inject};
}

std::vector<DecodeFault> length_faults() {
  return {
      fault<LengthsAreUpperBounds>("lengths_are_upper_bounds",
                                   "M: the host knows a bound of a length only", "seq_lens",
                                   kSteady),
      fault<LengthsOneStepOld>("lengths_one_step_old", "M: lengths of the step before", "seq_lens",
                               kSteady),
      fault<LengthsOfAsManyTokens>("lengths_of_as_many_tokens",
                                   "M: a prefix hit changes lengths and not the number of tokens",
                                   "state_lens", kPrefixes),
      fault<RejectedTokensCounted>("rejected_tokens_counted",
                                   "M: rejected tokens count as computed", "computed tokens",
                                   kRejecting, with_draft_tokens),
      fault<PositionsOfTheFirstToken>("positions_of_the_first_token",
                                      "M: draft tokens have the position of the first", "positions",
                                      kRejecting, with_draft_tokens),
      fault<DrafterGetsTheCurrentToken>("drafter_gets_the_current_token",
                                        "M: the drafter is given the current token",
                                        "next_token_keys", kRejecting, with_draft_tokens),
  };
}

std::vector<DecodeFault> place_faults() {
  return {
      fault<TablesStayInTheirRows>("tables_stay_in_their_rows",
                                   "M2: state of a request is kept under its row in the batch",
                                   "block_tables", kPermuted),
      fault<TablesKeepEarlierBlocks>("tables_keep_earlier_blocks",
                                     "M2: the table of a row keeps a finished request's blocks",
                                     "block_tables", kReplaced),
      fault<SlotsOfTheRowBefore>("slots_of_the_row_before", "M: slots are off by a row",
                                 "slot_mapping", kSteady),
      fault<StateSlotsOneTokenLate>("state_slots_one_token_late",
                                    "M: a state is written with the token behind it",
                                    "slot_mapping", kSteady),
  };
}

std::vector<DecodeFault> block_faults() {
  return {
      fault<OneBlockMoreShared>("one_block_more_shared", "M4: a hit shares a block too many",
                                "prefix hit", kPrefixes),
      fault<HitCountsABlockMore>("hit_counts_a_block_more",
                                 "M4: a hit changes lengths, and its tokens stay", "prefix hit",
                                 kPrefixes),
      fault<GapNotFilled>("gap_of_a_hit_not_filled",
                          "M4: window blocks of a hit that nobody filled", "prefix hit", kPrefixes,
                          freeing_window),
      fault<DraftersGapNotFilled>("drafters_gap_of_a_hit_not_filled",
                                  "M4: window blocks of a hit that only the target filled",
                                  "prefix hit", kPrefixes, both(with_drafter(), freeing_window)),
      fault<SharerNotCounted>("sharer_not_counted", "M4: a block is freed while it is shared",
                              "block release", kPrefixes),
      fault<WindowEndsABlockEarly>("window_ends_a_block_early",
                                   "M5: a block goes back that the window still sees",
                                   "block release", kSteady, freeing_window),
      fault<LeftBlocksKept>("left_blocks_kept",
                            "M5: a block that left the window goes back again at the end",
                            "block release", kReplaced, freeing_window),
      fault<NothingGivenBack>("nothing_given_back", "M5: blocks of finished requests are kept",
                              "block release", kReplaced),
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_requests() {
  std::vector<DecodeFault> all;
  for (const auto& make : {length_faults, place_faults, block_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace plumb::cases
