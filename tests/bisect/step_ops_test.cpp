// SPDX-License-Identifier: Apache-2.0
//
// The search for broken ops against every fault of the library. Those of all faults and of pairs
// take minutes: with PLUMB_FULL=1 in the environment.
#include "bisect/step_ops.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "cases/faults/fault_runs.h"

namespace plumb::bisect {
namespace {

using cases::DecodeFault;
using cases::DecodeRun;

struct Searched {
  OpsReport report;
  int watches = 0;
};

Searched search(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape) {
  Searched searched;
  OpsQuestions ask;
  ask.watch = [&](const Ops& exchanged, const std::string&) {
    ++searched.watches;
    return watch_exchanged(setup, shape, exchanged);
  };
  ask.results = [&](const Ops& exchanged) { return results_of(setup, shape, exchanged); };
  searched.report = search_ops(exchangeable_ops(), ask);
  return searched;
}

DecodeRun run_of(const DecodeFault& fault, const std::string& platform) {
  return cases::fault_runs({platform}, {&fault}, 0).front();
}

TEST(StepOps, EveryFault) {
  for (const DecodeFault& fault : cases::all_decode_faults()) {
    const DecodeRun run = run_of(fault, "sim-sm90");
    const Searched searched = search(run.setup, run.schedule);
    std::string text;
    for (const Culprit& one : searched.report.culprits) text += one.op + " ";
    if (searched.report.left) text += "LEFT " + text_of(*searched.report.left).substr(0, 110);
    std::printf("%-32s broken %-30s kind %d watches %d: %s %s\n", fault.name.c_str(),
                fault.broken.c_str(), static_cast<int>(searched.report.kind), searched.watches,
                text.c_str(), searched.report.why.c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace plumb::bisect
