// SPDX-License-Identifier: Apache-2.0
//
// Operations of one wave. An operation is open from the first lane that arrives to the last lane of
// its mask; the last one hands every lane its result, so that no lane can overtake another's read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/sim/context.h"

namespace plumb::device::sim {

constexpr int kMostLanes = 64;

const char* name_of(WaveKind kind);
std::string lane_list(std::uint64_t mask);  // "0-15, 31"

class Wave {
 public:
  struct Operation {
    WaveKind kind;
    std::uint64_t mask, arrived;
    Site site;
  };
  struct Result {
    std::uint64_t completed = 0;  // the lanes that may go on; 0: the caller has to wait
    Fault fault = Fault::other;
    std::string error;  // empty: legal
  };

  void start_block(int lanes);
  std::uint64_t lanes() const { return lanes_; }
  std::uint64_t exited() const { return exited_; }
  Result arrive(int lane, WaveKind kind, std::uint64_t mask, std::uint64_t value, int source,
                const Site& site);
  std::uint64_t result_of(int lane) const { return results_[lane]; }
  // The lane returned; an error if an open operation names it.
  Result leave(int lane);
  const Operation* waiting_operation(int lane) const;

 private:
  std::string why_illegal(int lane, WaveKind kind, std::uint64_t mask, const Site& site,
                          Fault& fault) const;
  Operation& open(int lane, WaveKind kind, std::uint64_t mask, const Site& site);
  void complete(const Operation& operation);

  std::uint64_t lanes_ = 0, exited_ = 0;
  std::vector<Operation> open_;
  std::uint64_t values_[kMostLanes], results_[kMostLanes];
  int sources_[kMostLanes];
};

}  // namespace plumb::device::sim
