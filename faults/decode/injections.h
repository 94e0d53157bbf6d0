// SPDX-License-Identifier: Apache-2.0
//
// How faults of a decode step are planted, for the lists in decode_faults_*.cpp: what each adds to
// a setup, and the steps that bring it out.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "decode/watch/watch.h"
#include "faults/replaced_op.h"

namespace plumb::cases {

using Inject = std::function<DecodeSetup(DecodeSetup)>;

// Another policy than the right one, in a mode where it matters.
template <class Policy, class Base>
Inject policy(std::shared_ptr<const Base> device::decode::Policies::* where,
              device::decode::GraphMode mode = device::decode::GraphMode::full) {
  return [where, mode](DecodeSetup setup) {
    setup.policies.*where = std::make_shared<Policy>();
    setup.mode = mode;
    return setup;
  };
}

// A kernel of mutants/*.cmake in place of the right one.
Inject mutant(std::string_view name);
// The right kernel, whose calls are changed on their way (changed_calls.h).
Inject changed_call(const Replacement& by);

// First one, then the other.
Inject both(Inject first, Inject second);

// The steps of V4 in which a fault shows: with room for so many requests, which one graph holds;
// with a drafter; with prompts beside decodes of up to four tokens; with caches in fnuz codes on
// every platform; on a device that works as late as it may, or whose last threads come first.
Inject with_requests(std::int64_t requests);
Inject with_drafter();
Inject with_prompts();
Inject with_fnuz_caches();
Inject with_late_device();
Inject with_reverse_order();
// Those of V3.2, with room for padding.
Inject of_v32();
Inject of_v32(const device::decode::V32Policies& policies);
Inject with_uneven_decodes();  // of V3.2, of up to four tokens

inline constexpr ScheduleShape kSteady{Traffic::steady, Lengths::mixed, 3, 4, 1};
inline constexpr ScheduleShape kShrink{Traffic::shrink, Lengths::random, 4, 4, 1};
inline constexpr ScheduleShape kLonger{Traffic::steady, Lengths::equal, 8, 4, 2};
inline constexpr ScheduleShape kGrowing{Traffic::steady, Lengths::short_ones, 8, 4, 2};
inline constexpr ScheduleShape kPermuted{Traffic::permute, Lengths::mixed, 4, 5, 1};
inline constexpr ScheduleShape kThereAndBack{Traffic::there_and_back, Lengths::mixed, 4, 5, 1};
inline constexpr ScheduleShape kLongThereAndBack{Traffic::there_and_back, Lengths::equal, 4, 5, 1};
inline constexpr ScheduleShape kPrompts{Traffic::prompts, Lengths::short_ones, 4, 4, 3};
inline constexpr ScheduleShape kLongPrompts{Traffic::prompts, Lengths::equal, 4, 4, 3};
inline constexpr ScheduleShape kManyPrompts{Traffic::prompts, Lengths::short_ones, 16, 4, 3};
inline constexpr ScheduleShape kUneven{Traffic::uneven, Lengths::mixed, 4, 4, 1};
inline constexpr ScheduleShape kSameEnds{Traffic::same_ends, Lengths::around_page, 4, 4, 1};
inline constexpr ScheduleShape kRandom{Traffic::random, Lengths::random, 6, 4, 1};
inline constexpr ScheduleShape kCrowd{Traffic::steady, Lengths::random, 2, 20, 1};

}  // namespace plumb::cases
