// SPDX-License-Identifier: Apache-2.0
//
// Records which kernels the graphs captured by a case contain. A run can require some of them: if a
// library falls back to another kernel, its results are still right and no verdict shows it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

class CapturedKernels {
 public:
  CapturedKernels();
  // `options`, changed so that every device it opens records its captures here.
  RunOptions noting(RunOptions options) const;
  // Every captured graph must contain, for each pattern (wildcards * and ? as in a shell), a kernel
  // whose name matches. Returns a line for each pattern that no kernel of a graph matches, or one
  // line if no graph was captured. Kernels without a name match no pattern.
  std::vector<std::string> unexpected(const std::vector<std::string>& patterns) const;

 private:
  class NotingDevice;
  struct Graphs;
  std::shared_ptr<Graphs> graphs_;
};

}  // namespace plumb::cases
