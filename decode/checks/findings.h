// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a step, put in order: the first finding names what went wrong first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::cases {

enum class Detector {
  error,       // a call threw
  history,     // the host planned something else than the history of its requests gives
  inputs,      // the device's inputs of the step are not what the host planned
  ran,         // the replay wrote nothing at all
  order,       // a step calls an op that its model does not have there, or leaves one out
  address,     // a graph uses memory that its engine has given back
  candidates,  // attention is pointed at other slots than the requests' own
  convention,  // a call has another constant than the model was published with
  metadata,    // V3.2: persistent buffers, or the plan that was kept, are not this step's
  reference,   // an op is wrong on the bytes that it was given
  state,    // bytes changed that no call has written, slots that no live token owns, blocks of two
  eager,    // a call of the replay differs from the same call run eagerly on fresh state
  twin,     // the graph with a recorder and the one without give different results
  padding,  // what padding holds reaches a live row
  path,     // the graph does not launch what the eager step launches, or is not there
  cost,     // a step waits for the device, captures or plans again what it had
  fresh,    // an engine made anew gives other results on the same requests and caches
  alone     // a runner beside others gives other results than alone (side_by_side.h)
};
inline constexpr int kDetectors = 18;
std::string_view name_of(Detector detector);

struct Finding {
  Detector detector = Detector::reference;
  std::int64_t step = 0;
  std::int64_t position = 0;  // of the call in its step; metadata first
  std::string op, call;       // "sparse_mla_decode", "layer 1 attention"; "inputs" of the step
  std::string text;           // one line
};

// Of one step, by position; those of one position as they were found.
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
