// SPDX-License-Identifier: Apache-2.0
//
// How the lists in decode_faults_*.cpp plant faults: changes of a setup, and schedules in which a
// fault shows.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "decode/watch/watch.h"
#include "faults/replaced_op.h"

namespace plumb::cases {

using Inject = std::function<DecodeSetup(DecodeSetup)>;

// Replaces a right policy by `Policy`, in a graph mode in which the policy matters.
template <class Policy, class Base>
Inject policy(std::shared_ptr<const Base> device::decode::Policies::* where,
              device::decode::GraphMode mode = device::decode::GraphMode::full) {
  return [where, mode](DecodeSetup setup) {
    setup.policies.*where = std::make_shared<Policy>();
    setup.mode = mode;
    return setup;
  };
}

// Replaces a right kernel by a mutant: a kernel with one piece of its text replaced
// (mutants/*.cmake).
Inject mutant(std::string_view name);
// Changes the calls of a right kernel (changed_calls.h).
Inject changed_call(const Replacement& by);

// Applies `first`, then `second`.
Inject both(Inject first, Inject second);

// Changes of a V4 setup in which a fault shows. with_requests: room for so many requests, all in
// one graph. with_prompts: prompts beside decodes of up to four tokens. with_fnuz_caches: e4m3fnuz
// codes on every platform. with_late_device: work runs as late as possible. with_reverse_order: the
// last threads run first.
Inject with_requests(std::int64_t requests);
Inject with_drafter();
Inject with_prompts();
Inject with_fnuz_caches();
Inject with_late_device();
Inject with_reverse_order();
// V3.2 setups with room for padding.
Inject of_v32();
Inject of_v32(const device::decode::V32Policies& policies);
Inject with_uneven_decodes();  // V3.2, decodes of up to four tokens

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
