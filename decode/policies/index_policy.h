// SPDX-License-Identifier: Apache-2.0
//
// When the indexer makes the schedule of its logits [5.7] again, and when it gathers keys. The
// defaults are right.
#pragma once

#include <cstdint>
#include <memory>

#include "device/caching_allocator.h"
#include "device/device.h"

namespace plumb::device::decode {

struct StepInputs;
struct StepPlan;

// Shape of the lengths for which a schedule is made.
struct ScheduledShape {
  std::int64_t requests = 0, next_n = 0;
  bool operator==(const ScheduledShape&) const = default;
};

// Numbers of entries, in device memory.
struct ScheduledLengths {
  const std::int32_t* lens;  // [requests, next_n]
  ScheduledShape shape;
};

// What other lengths can be taken from.
struct PlannerSource {
  const StepInputs& inputs;
  const StepPlan& plan;
  std::int64_t most;  // lengths that any step may have
  Device& device;
  Stream stream;  // of the planner
  CachingAllocator& temporaries;
};

// Chooses the lengths that the planner of one engine gets. Right is `scored`: how many entries each
// row of this step may score.
class PlannerLengths {
 public:
  virtual ~PlannerLengths() = default;
  virtual ScheduledLengths choose(const PlannerSource&, const ScheduledLengths& scored) {
    return scored;
  }
};

class IndexPolicy {
 public:
  virtual ~IndexPolicy() = default;
  // Whether this step uses the schedule of the step before. Right is: never, because the lengths
  // grow with each step.
  virtual bool keeps(const ScheduledShape& /*made_for*/, const ScheduledShape& /*now*/) const {
    return false;
  }
  // Called once per engine. The result may keep something from step to step.
  virtual std::unique_ptr<PlannerLengths> planner_lengths() const {
    return std::make_unique<PlannerLengths>();
  }
  // Whether the schedule stays at the address that a captured graph reads. False: each step
  // allocates it.
  virtual bool keeps_its_address() const { return true; }
  // Whether a layer gathers the keys of a prefill chunk. Right is: always, because the workspace
  // holds the keys of the layer before.
  virtual bool gathers_keys(int /*layer*/) const { return true; }
  // Row of the head weights of a prefill chunk's first token. The rows are those of all tokens, and
  // `decodes` of them stand in front of the prompts.
  virtual std::int64_t first_weights(std::int64_t token, std::int64_t /*decodes*/) const {
    return token;
  }
};

}  // namespace plumb::device::decode
