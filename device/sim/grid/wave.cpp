// SPDX-License-Identifier: Apache-2.0
//
// Which lanes may meet in an operation, and the result of each lane.
#include "device/sim/grid/wave.h"

#include <fmt/format.h>

#include <bit>

#include "device/sim/grid/shared_memory.h"

namespace plumb::device::sim {

namespace {

constexpr std::uint64_t kPoisonWord = 0x0001000100010001U * kPoison;

}  // namespace

const char* name_of(WaveKind kind) {
  switch (kind) {
    case WaveKind::sync: return "wave_sync";
    case WaveKind::ballot: return "ballot";
    case WaveKind::shuffle: return "shuffle";
    case WaveKind::shuffle_down: return "shuffle_down";
    default: return "shuffle_xor";
  }
}

std::string lane_list(std::uint64_t mask) {
  std::string list;
  for (int lane = 0; lane < kMostLanes; ++lane) {
    if ((mask & lane_bit(lane)) == 0) continue;
    int last = lane;
    while (last + 1 < kMostLanes && (mask & lane_bit(last + 1)) != 0) ++last;
    if (!list.empty()) list += ", ";
    list += last == lane ? fmt::format("{}", lane) : fmt::format("{}-{}", lane, last);
    lane = last;
  }
  return list;
}

void Wave::start_block(int lanes) {
  lanes_ = lanes == kMostLanes ? ~std::uint64_t{0} : lane_bit(lanes) - 1;
  exited_ = 0;
  open_.clear();
}

// Whether the operation and the call each wait for a lane of the other, so that neither can ever
// complete. A weaker overlap may resolve: a lane that is awaited here may first complete an
// operation with other lanes.
bool Wave::conflicts(const Operation& operation, const WaveCall& call) const {
  return (operation.mask & lane_bit(call.lane)) != 0 && (call.mask & operation.arrived) != 0 &&
         !is_same(operation, call);
}

bool Wave::is_legal(const WaveCall& call) const {
  if ((call.mask & lane_bit(call.lane)) == 0 || (call.mask & (~lanes_ | exited_)) != 0)
    return false;
  for (const Operation& operation : open_)
    if (conflicts(operation, call)) return false;
  return true;
}

std::string Wave::why_illegal(const WaveCall& call, ErrorKind& fault) const {
  const std::string where = fmt::format("{} at {}", name_of(call.kind), name_of_site(call.site));
  fault = ErrorKind::invalid_argument;
  if ((call.mask & lane_bit(call.lane)) == 0)
    return fmt::format("{} with a mask that does not name the calling lane (lanes {})", where,
                       lane_list(call.mask));
  fault = ErrorKind::exited_lane;
  if ((call.mask & ~lanes_) != 0)
    return fmt::format("{} names lanes {}, which the wave does not have", where,
                       lane_list(call.mask & ~lanes_));
  if ((call.mask & exited_) != 0)
    return fmt::format("{} names lanes {}, which have returned", where,
                       lane_list(call.mask & exited_));
  fault = ErrorKind::divergent_barrier;
  for (const Operation& other : open_)
    if (conflicts(other, call))
      return fmt::format(
          "{} names lanes {}, but lanes {} of the wave are in {} at {} naming lanes {}", where,
          lane_list(call.mask), lane_list(other.arrived), name_of(other.kind),
          name_of_site(other.site), lane_list(other.mask));
  return {};
}

Wave::Operation& Wave::open(const WaveCall& call) {
  for (Operation& operation : open_)
    if (is_same(operation, call)) return operation;
  return open_.emplace_back(Operation{call.kind, call.mask, 0, call.site});
}

// All lanes have arrived: stores the results and closes the operation.
std::uint64_t Wave::complete(Operation& operation) {
  const std::uint64_t mask = operation.mask;
  if (operation.kind == WaveKind::ballot)
    give_votes(mask);
  else if (operation.kind != WaveKind::sync)
    give_values(mask);
  operation = open_.back();
  open_.pop_back();
  return mask;
}

void Wave::give_votes(std::uint64_t mask) {
  std::uint64_t votes = 0;
  for (std::uint64_t left = mask; left != 0; left &= left - 1)
    votes |= values_[std::countr_zero(left)] << std::countr_zero(left);
  for (std::uint64_t left = mask; left != 0; left &= left - 1)
    results_[std::countr_zero(left)] = votes;
}

void Wave::give_values(std::uint64_t mask) {
  for (std::uint64_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const int source = sources_[lane];
    const bool given = source >= 0 && source < kMostLanes && (mask & lane_bit(source)) != 0;
    results_[lane] = given ? values_[source] : kPoisonWord;
  }
}

const Wave::Operation* Wave::leave(int lane) {
  exited_ |= lane_bit(lane);
  for (const Operation& operation : open_)
    if ((operation.mask & lane_bit(lane)) != 0) return &operation;
  return nullptr;
}

const Wave::Operation* Wave::waiting_operation(int lane) const {
  for (const Operation& operation : open_)
    if ((operation.arrived & lane_bit(lane)) != 0) return &operation;
  return nullptr;
}

}  // namespace plumb::device::sim
