// SPDX-License-Identifier: Apache-2.0
//
// Operations of one wave. An operation is open from the first lane that arrives to the last lane of
// its mask. The last lane stores the results of all lanes, so that no lane can overtake another's
// read. Several operations may be open: a lane that one of them awaits may first meet other lanes
// in another operation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/sim/context.h"
#include "device/sim/grid/barrier_sites.h"

namespace plumb::device::sim {

constexpr int kMostLanes = 64;

const char* name_of(WaveKind kind);
std::string lane_list(std::uint64_t mask);  // "0-15, 31"
inline std::uint64_t lane_bit(int lane) { return std::uint64_t{1} << lane; }

// One lane's call of an operation.
struct WaveCall {
  int lane;
  WaveKind kind;
  std::uint64_t mask;
  Site site;
};

class Wave {
 public:
  struct Operation {
    WaveKind kind;
    std::uint64_t mask, arrived;
    Site site;
  };

  void start_block(int lanes);
  std::uint64_t lanes() const { return lanes_; }

  bool is_legal(const WaveCall& call) const;
  // Why a call is illegal, and the kind of the error.
  std::string why_illegal(const WaveCall& call, ErrorKind& fault) const;
  // Whether the call belongs to the only open operation. Then it is legal: a lane that returns
  // while others wait for it ends the run, so the mask is as legal as when the operation was
  // opened.
  bool joins(const WaveCall& call) const {
    return open_.size() == 1 && is_same(open_.front(), call) &&
           (call.mask & lane_bit(call.lane)) != 0;
  }
  // The operation of a legal call, opened if need be.
  Operation& open(const WaveCall& call);
  // Returns the lanes that may continue if this lane was the last one; 0: the lane has to wait.
  std::uint64_t arrive(Operation& operation, const WaveCall& call, std::uint64_t value,
                       int source_lane) {
    values_[call.lane] = value;
    sources_[call.lane] = source_lane;
    operation.arrived |= lane_bit(call.lane);
    return operation.arrived == call.mask ? complete(operation) : 0;
  }
  Operation& only() { return open_.front(); }
  std::uint64_t result_of(int lane) const { return results_[lane]; }
  // The lane has returned. Returns the operation that waits for it in vain; nullptr if none does.
  const Operation* leave(int lane);
  // The operation in which the lane waits; nullptr if it waits in none.
  const Operation* waiting_operation(int lane) const;

 private:
  static bool is_same(const Operation& operation, const WaveCall& call) {
    return operation.kind == call.kind && operation.mask == call.mask &&
           same_line(operation.site, call.site);
  }
  bool conflicts(const Operation& operation, const WaveCall& call) const;
  std::uint64_t complete(Operation& operation);
  void give_votes(std::uint64_t mask);
  void give_values(std::uint64_t mask);

  std::uint64_t lanes_ = 0, exited_ = 0;
  std::vector<Operation> open_;
  std::uint64_t values_[kMostLanes], results_[kMostLanes];
  int sources_[kMostLanes];
};

}  // namespace plumb::device::sim
