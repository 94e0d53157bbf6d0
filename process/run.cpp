// SPDX-License-Identifier: Apache-2.0
#include "process/run.h"

#include <fmt/format.h>

#include <chrono>

#include "process/interrupts.h"
#include "process/output_file.h"

namespace plumb::process {

namespace {

constexpr double kGrace = 2;  // seconds for cleaning up after SIGTERM

// Returns false if the child exceeded the timeout and was killed.
bool wait_for(Child& child, RunLimits limits) {
  try {
    if (child.wait(Deadline::in(limits.timeout), limits.always)) return true;
  } catch (const Interrupted&) {
    child.end(kGrace);
    throw;
  }
  child.end(kGrace);
  return false;
}

}  // namespace

std::string Ended::how() const {
  return timed_out ? fmt::format("no result after {:.3g} s", seconds) : text();
}

Ended run_to_end(Command command, RunLimits limits) {
  if (!limits.always) Interrupts::check();
  const OutputFile out, err;
  command.out = Redirection::to_descriptor(out.descriptor());
  command.err = Redirection::to_descriptor(err.descriptor());
  const auto started = std::chrono::steady_clock::now();
  Child child(command);
  Ended ended;
  ended.timed_out = !wait_for(child, limits);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  static_cast<Ending&>(ended) = child.ending();
  if (!ended.timed_out) child.release();
  ended.out = out.text();
  ended.err = err.text();
  return ended;
}

}  // namespace plumb::process
