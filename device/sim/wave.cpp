// SPDX-License-Identifier: Apache-2.0
#include "device/sim/wave.h"

#include <fmt/format.h>

#include <bit>

#include "device/sim/barrier_sites.h"
#include "device/sim/shared_memory.h"

namespace plumb::device::sim {

namespace {

constexpr std::uint64_t kPoisonWord = 0x0001000100010001U * kPoison;

std::uint64_t bit(int lane) { return std::uint64_t{1} << lane; }

bool same_operation(const Wave::Operation& operation, WaveKind kind, std::uint64_t mask,
                    const Site& site) {
  return operation.kind == kind && operation.mask == mask && same_line(operation.site, site);
}

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
    if ((mask & bit(lane)) == 0) continue;
    int last = lane;
    while (last + 1 < kMostLanes && (mask & bit(last + 1)) != 0) ++last;
    if (!list.empty()) list += ", ";
    list += last == lane ? fmt::format("{}", lane) : fmt::format("{}-{}", lane, last);
    lane = last;
  }
  return list;
}

void Wave::start_block(int lanes) {
  lanes_ = lanes == kMostLanes ? ~std::uint64_t{0} : bit(lanes) - 1;
  exited_ = 0;
  open_.clear();
}

Wave::Result Wave::arrive(int lane, WaveKind kind, std::uint64_t mask, std::uint64_t value,
                          int source, const Site& site) {
  Result result;
  result.error = why_illegal(lane, kind, mask, site, result.fault);
  if (!result.error.empty()) return result;
  Operation& operation = open(lane, kind, mask, site);
  values_[lane] = value;
  sources_[lane] = source;
  operation.arrived |= bit(lane);
  if (operation.arrived != mask) return result;
  complete(operation);
  result.completed = mask;
  operation = open_.back();
  open_.pop_back();
  return result;
}

std::string Wave::why_illegal(int lane, WaveKind kind, std::uint64_t mask, const Site& site,
                              Fault& fault) const {
  const auto where = [&] { return fmt::format("{} at {}", name_of(kind), name_of_site(site)); };
  fault = Fault::invalid_argument;
  if ((mask & bit(lane)) == 0)
    return fmt::format("lane {} calls {} with a mask that does not name it (lanes {})", lane,
                       where(), lane_list(mask));
  fault = Fault::exited_lane;
  if ((mask & ~lanes_) != 0)
    return fmt::format("lane {} calls {} naming lanes {}, which the wave does not have", lane,
                       where(), lane_list(mask & ~lanes_));
  if ((mask & exited_) != 0)
    return fmt::format("lane {} calls {} naming lanes {}, which have returned", lane, where(),
                       lane_list(mask & exited_));
  fault = Fault::divergent_barrier;
  for (const Operation& other : open_) {
    if (same_operation(other, kind, mask, site)) continue;
    if ((other.mask & bit(lane)) == 0 && (mask & other.arrived) == 0) continue;
    return fmt::format(
        "lane {} is at {} with lanes {}, but lanes {} wait at {} at {} with lanes {}", lane,
        where(), lane_list(mask), lane_list(other.arrived), name_of(other.kind),
        name_of_site(other.site), lane_list(other.mask));
  }
  return {};
}

Wave::Operation& Wave::open(int lane, WaveKind kind, std::uint64_t mask, const Site& site) {
  for (Operation& operation : open_)
    if ((operation.mask & bit(lane)) != 0) return operation;
  return open_.emplace_back(Operation{kind, mask, 0, site});
}

void Wave::complete(const Operation& operation) {
  std::uint64_t votes = 0;
  if (operation.kind == WaveKind::ballot)
    for (std::uint64_t left = operation.mask; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      votes |= values_[lane] << lane;
    }
  for (std::uint64_t left = operation.mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const int source = sources_[lane];
    const bool legal = source >= 0 && source < kMostLanes && (operation.mask & bit(source)) != 0;
    results_[lane] = operation.kind == WaveKind::ballot ? votes
                     : legal                            ? values_[source]
                                                        : kPoisonWord;
  }
}

Wave::Result Wave::leave(int lane) {
  exited_ |= bit(lane);
  Result result;
  for (const Operation& operation : open_)
    if ((operation.mask & bit(lane)) != 0) {
      result.fault = Fault::exited_lane;
      result.error = fmt::format("lane {} has returned, but lanes {} wait for it in {} at {}", lane,
                                 lane_list(operation.arrived), name_of(operation.kind),
                                 name_of_site(operation.site));
    }
  return result;
}

const Wave::Operation* Wave::waiting_operation(int lane) const {
  for (const Operation& operation : open_)
    if ((operation.arrived & bit(lane)) != 0) return &operation;
  return nullptr;
}

}  // namespace plumb::device::sim
