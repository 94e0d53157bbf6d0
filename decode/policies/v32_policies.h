// SPDX-License-Identifier: Apache-2.0
//
// Choices of V3.2's metadata builder that can go wrong without a word. The defaults are right.
#pragma once

#include <memory>

#include "decode/metadata/plan_key.h"

namespace plumb::device::decode {

// How the persistent buffers are kept clean   [3.1, 3.2].
class PagedBufferPolicy {
 public:
  virtual ~PagedBufferPolicy() = default;
  // Are the buffers initialised before the first step?
  virtual bool initialises() const { return true; }
  // What the builder knows of how far the step before this one reached: all of it, and this one
  // will be remembered; all of it, but not this one; nothing. It clears from where this step ends
  // to there.
  enum class Extents { kept, lost, unknown };
  virtual Extents extents(const StepPlan& /*plan*/) const { return Extents::kept; }
  // Are rows of paged_kv_indptr behind the live tokens rewritten too, so that they own nothing?
  virtual bool ends_dead_rows(const StepPlan& /*plan*/) const { return true; }
};

struct V32Policies {
  std::shared_ptr<const PlanKeyPolicy> plan_key = std::make_shared<PlanKeyPolicy>();
  std::shared_ptr<const PagedBufferPolicy> buffers = std::make_shared<PagedBufferPolicy>();
};

}  // namespace plumb::device::decode
