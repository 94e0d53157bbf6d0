// SPDX-License-Identifier: Apache-2.0
//
// The kernels in the graphs that a case captures, for a run that expects some of them: a library
// that falls back to another kernel gives right results, and no verdict shows it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

class CapturedKernels {
 public:
  CapturedKernels();
  // These options on devices whose captures are noted here.
  RunOptions noting(RunOptions options) const;
  // Each captured graph has to contain, for each pattern (* and ? as in a shell), a kernel whose
  // name matches. What is missing, a line each. Kernels without a name match nothing.
  std::vector<std::string> unexpected(const std::vector<std::string>& patterns) const;

 private:
  class NotingDevice;
  struct Graphs;
  std::shared_ptr<Graphs> graphs_;
};

}  // namespace plumb::cases
