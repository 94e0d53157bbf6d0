// SPDX-License-Identifier: Apache-2.0
//
// Findings about a step, in the order of its calls: the first finding names the op that went wrong
// first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::cases {

enum class Detector {
  error,       // a call threw
  history,     // the host's plan contradicts the history of its requests
  inputs,      // inputs on the device differ from the host's plan
  ran,         // the replay wrote nothing at all
  order,       // an op against its model's order, or with another layer's weights or results
  address,     // a graph uses memory that its engine has freed
  candidates,  // attention reads other slots than those of the request
  convention,  // a constant of a call differs from the published model's
  metadata,    // a plan that a kernel reads, or a persistent buffer of V3.2, does not fit this step
  reference,   // an op is wrong on the bytes that it read
  state,       // bytes changed without a writer or a live owner; a block has two requests
  eager,       // a call of the replay differs from the same call run eagerly with fresh state
  twin,        // results differ between the graph with a recorder and the one without
  padding,     // the contents of padding or of unwritten scratch change a live row
  path,        // the graph launches other kernels than the eager step, or is missing
  cost,        // a step waits for the device, captures again, or plans again
  fresh,       // a newly created engine gives other results for the same requests and caches
  alone        // an engine beside others gives other results than alone (side_by_side.h)
};
inline constexpr int kDetectors = 18;
std::string_view name_of(Detector detector);

struct Finding {
  Detector detector = Detector::reference;
  std::int64_t step = 0;
  std::int64_t position = 0;  // number of the call in its step; metadata is first
  std::string op, call;       // "sparse_mla_decode", "layer 1 attention"; "inputs" of the step
  std::string text;           // one line
};

// Findings of one step, ordered by position. Findings with equal position keep their order.
class Findings {
 public:
  explicit Findings(std::int64_t step) : step_(step) {}

  void add(Detector detector, std::int64_t position, std::string op, std::string call,
           std::string text);
  const std::vector<Finding>& all() const { return all_; }
  std::int64_t step() const { return step_; }

 private:
  std::int64_t step_;
  std::vector<Finding> all_;
};

}  // namespace plumb::cases
