// SPDX-License-Identifier: Apache-2.0
//
// The side of a worker process that answers requests about files of a trace.
#pragma once

#include <sys/resource.h>

#include <new>

#include "process/codec.h"
#include "trace/judge_call.h"

namespace plumb::trace {

// A file of a step, and what it says.
struct OpenStep {
  StepBytes bytes;
  TraceStep step;

  explicit OpenStep(const std::string& path) : bytes(path), step(parse_step(bytes.text(), path)) {}
};

// Files of others may crash the worker. They may not make it write.
inline void write_no_files() {
  const rlimit nothing{0, 0};
  setrlimit(RLIMIT_FSIZE, &nothing);
  setrlimit(RLIMIT_CORE, &nothing);
}

// answer(request, its answer) for each request, until the parent hangs up. Returns the exit code.
template <class Request, class Answer>
int serve_steps(const auto& answer) {
  write_no_files();
  return process::serve([&](const process::WorkerRequest& encoded) {
    Answer answered;
    try {
      answer(process::decode<Request>(encoded.body), answered);
    } catch (const BadTrace& error) {
      answered.refused = error.what();
    } catch (const std::bad_alloc&) {
      answered.refused = encoded.name + ": needs too much memory";
    }
    return process::encode(answered);
  });
}

}  // namespace plumb::trace
