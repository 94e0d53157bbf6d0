// SPDX-License-Identifier: Apache-2.0
//
// A decode step under watch. Four engines run the same schedule, each on a device of its own:
//
//   plain   as it would be served: graphs, no taps
//   twin    the same with taps in its graphs: every op is judged against the reference on the bytes
//           that it was given, and nothing but its outputs may have changed
//   eager   every step run eagerly at the same padded shape, on a fresh attention state, with taps:
//           the twin's calls must have the same bits
//   other   as plain, with other values wherever padding may hold anything: the same live rows
//
// What they say is put in order: the first finding names the op that went wrong first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/decode/schedule.h"
#include "device/decode/engine.h"

namespace plumb::cases {

// How the code under test is set up. A fault changes it, for all four engines alike.
struct DecodeSetup {
  std::string platform = "sim-sm90";
  device::Conditions conditions;
  device::decode::Geometry geometry = device::decode::small_geometry(4);
  device::decode::GraphMode mode = device::decode::GraphMode::full;
  device::decode::Policies policies;
  // The table of ops for a platform, as in RunOptions; plumb's own, unless set.
  std::function<const plumb_implementation&(std::string_view platform, bool checked)>
      implementation;
  std::function<std::unique_ptr<device::Device>(std::unique_ptr<device::Device>)> wrap;
};

enum class Detector {
  error,       // a call threw
  inputs,      // the device's inputs of the step are not what the host planned
  ran,         // the replay wrote nothing at all
  address,     // a graph uses memory that its engine has given back
  candidates,  // attention is pointed at other slots than the requests' own
  reference,   // an op is wrong on the bytes that it was given
  state,       // bytes changed that no call has written, or slots that no live token owns
  eager,       // a call of the replay differs from the same call run eagerly on fresh state
  twin,        // the graph with taps and the one without give different results
  padding,     // what padding holds reaches a live row
  path         // the graph does not launch what the eager step launches, or was captured again
};
std::string_view name_of(Detector detector);

struct Finding {
  Detector detector = Detector::reference;
  std::int64_t step = 0;
  std::int64_t position = 0;  // of the call in its step; metadata first
  std::string op, call;       // "sparse_mla_decode", "layer 1 attention"; "inputs" of the step
  std::string text;           // one line
};

struct WatchResult {
  std::vector<Finding> findings;  // by step, then position
  std::int64_t steps = 0, calls_judged = 0;
  bool clean() const { return findings.empty(); }
  bool found_by(Detector detector) const;
};

// Ends after the first step with findings.
WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape);

}  // namespace plumb::cases
