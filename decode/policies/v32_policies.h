// SPDX-License-Identifier: Apache-2.0
//
// Choices of V3.2's metadata builder that can go wrong without an error message. Defaults are
// right.
#pragma once

#include <memory>

#include "decode/metadata/plan_key.h"

namespace plumb::device::decode {

// How stale entries are removed from the persistent buffers   [3.1, 3.2].
class PagedBufferPolicy {
 public:
  virtual ~PagedBufferPolicy() = default;
  // Whether the buffers are initialised before the first step.
  virtual bool initialises() const { return true; }
  // What the builder knows about the extent (tokens, entries) of the step before. It clears from
  // the end of this step up to that extent. `kept`: it knows the extent, and stores this step's.
  // `lost`: it knows it, but does not store this step's. `unknown`: it takes the extent as 0.
  enum class Extents { kept, lost, unknown };
  virtual Extents extents(const StepPlan& /*plan*/) const { return Extents::kept; }
  // Whether rows of paged_kv_indptr after the live tokens are rewritten too, so that they are
  // empty.
  virtual bool ends_dead_rows(const StepPlan& /*plan*/) const { return true; }
};

struct V32Policies {
  std::shared_ptr<const PlanKeyPolicy> plan_key = std::make_shared<PlanKeyPolicy>();
  std::shared_ptr<const PagedBufferPolicy> buffers = std::make_shared<PagedBufferPolicy>();
};

}  // namespace plumb::device::decode
