// SPDX-License-Identifier: Apache-2.0
//
// What all worker processes of plumb judge share: they answer requests about files of a trace.
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <new>

#include "process/codec.h"
#include "trace/judge_call.h"
#include "trace/profiles/profile.h"

namespace plumb::trace {

// An open file of a step and its parsed contents.
struct OpenStep {
  StepBytes bytes;
  TraceStep step;

  explicit OpenStep(const std::string& path) : bytes(path), step(parse_step(bytes.text(), path)) {
    apply_profiles(step);
  }
};

// Forbids this worker to write files, core dumps included: a malicious trace may crash it, but must
// not make it write.
inline void write_no_files() {
  const rlimit nothing{0, 0};
  setrlimit(RLIMIT_FSIZE, &nothing);
  setrlimit(RLIMIT_CORE, &nothing);
}

// Keeps this worker's memory small. Many workers run at once, each on a few rows of a large call.
// So memory of untouched rows must not be allocated, not even by huge pages, and freed memory must
// be returned to the system.
inline void take_little_memory() {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 1 << 16);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 24);
#endif
}

// Calls answer(request, its answer) for each request until the parent closes the channel. Returns
// the exit code.
template <class Request, class Answer>
int serve_steps(const auto& answer) {
  write_no_files();
  take_little_memory();
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
