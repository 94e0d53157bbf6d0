// SPDX-License-Identifier: Apache-2.0
//
// Calls of ops in a decode step: by name, through the op table of an implementation. An observer
// sees each call (detectors use this), and an exchange can replace a call (faults use this).
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "device/device.h"
#include "device/launch_state.h"

namespace plumb::device::decode {

// An implementation lacks an op or refuses a call of it, or no row of the op describes the call.
// The step then fails: no other kernel silently replaces the op.
class RefusedCall : public std::runtime_error {
 public:
  RefusedCall(std::string_view refused, const std::string& what)
      : std::runtime_error(what), op(refused) {}
  std::string op;
};

// Place in a step where an op is called. The name is for reports only: checks and seeds use the
// numbers.
struct CallPlace {
  CallPlace() = default;
  CallPlace(std::string text) : name(std::move(text)) {}
  CallPlace(const char* text) : name(text) {}
  // A copy of this place whose name has `more` appended.
  CallPlace with(std::string_view more) const {
    CallPlace place = *this;
    place.name += more;
    return place;
  }
  CallPlace in_chunk(std::size_t number) const {
    CallPlace place = with(" of chunk " + std::to_string(number));
    place.chunk = static_cast<int>(number);
    return place;
  }

  std::string name;    // "layer 1 attention"
  int layer = -1;      // layer of the target or of the drafter; -1: outside of layers
  int chunk = -1;      // chunk of the prefill; -1: outside of chunks
  bool draft = false;  // a call of the drafter
};
// "layer 2 attention"
CallPlace layer_place(std::size_t layer, std::string_view what);

struct Call {
  std::string_view op;  // in plumb_ops.h or device/kernels/placeholders/placeholder_kernels.h
  CallPlace place;
  void* params;                          // the op's struct
  device::LaunchState* state = nullptr;  // host state; nullptr: the op has none
  void** own = nullptr;                  // address of params->state; nullptr: no state
};

// A part of a step ("metadata", "layers") and its number of tokens with padding. Each step with as
// many tokens makes the same calls in the part, unless `varies`: then the batch is not uniform, and
// the part is never captured.
struct StepPart {
  std::string name;
  std::int64_t tokens = 0;
  bool varies = false;
  bool replayed = false;      // the step has ended, and a graph replayed this part
  bool fills = false;         // fills the caches of an admitted request; belongs to no step
  std::uint64_t request = 0;  // request whose caches the target fills; 0: this part fills none
  bool kept = false;          // its output is kept: another engine may run the step without it

  bool operator==(const StepPart&) const = default;
};

// Notified of each part and each call while a step is enqueued or captured. Work that an observer
// enqueues on the stream during a capture becomes part of the graph.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begin(const StepPart& part) = 0;
  virtual void before(const Call& call, Stream stream) = 0;
  virtual void after(const Call& call, Stream stream) = 0;
  // True before a step is captured, false after it. No step reads the results of calls that run
  // meanwhile outside of the graph, as those of the warm-up.
  virtual void captures(bool /*begins*/) {}
};

// Runs something else in place of an op, eagerly or during a capture.
class CallExchange {
 public:
  virtual ~CallExchange() = default;
  virtual bool takes(const Call& call) = 0;
  virtual void launch(const Call& call, Stream stream) = 0;  // takes(call) was true just before
};

// Chooses what happens when the implementation lacks an op that is called.
class MissingOpPolicy {
 public:
  virtual ~MissingOpPolicy() = default;
  // By default no op runs instead, and the call throws. If plumb's own op ran instead, its right
  // results would be reported as those of the tested implementation   [vLLM #42810].
  virtual const device::OpEntry* instead(std::string_view /*op*/,
                                         const device::Implementation& /*own*/) const {
    return nullptr;
  }
};

class Caller {
 public:
  // `own`: plumb's table of placeholder kernels, which no implementation under test has
  // (device/kernels/placeholders/placeholder_kernels.h).
  Caller(const device::Implementation& ops, const device::Implementation& own,
         const MissingOpPolicy& missing, Stream stream)
      : ops_(ops), own_(own), missing_(missing), stream_(stream) {}

  // Enqueues the op on the stream. Throws RefusedCall.
  template <class Params>
  void operator()(std::string_view op, CallPlace place, Params params) const {
    params.stream = stream_;
    launch({op, std::move(place), &params});
  }

  // As above, for an op with host state.
  template <class Params>
  void operator()(std::string_view op, CallPlace place, Params params,
                  device::LaunchState& state) const {
    params.stream = stream_;
    launch({op, std::move(place), &params, &state, &params.state});
  }

  // Tells the observer that the calls that follow belong to this part of a step.
  void begin(const StepPart& part) const {
    if (observer_ != nullptr) observer_->begin(part);
  }
  // Tells the observer that the capture of a step begins or has ended.
  void captures(bool begins) const {
    if (observer_ != nullptr) observer_->captures(begins);
  }
  // Whether the implementation has this op.
  bool has(std::string_view op) const { return device::find_entry(ops_, op) != nullptr; }
  // Whether the implementation of the op declares this value of a choice: "outputs=out".
  bool chooses(std::string_view op, std::string_view choice) const;
  Stream stream() const { return stream_; }
  std::int64_t calls() const { return calls_; }                    // enqueued so far
  void observe(CallObserver* observer) { observer_ = observer; }   // nullptr: stops observing
  void exchange(CallExchange* exchange) { exchange_ = exchange; }  // nullptr: all ops run

 private:
  void launch(const Call& call) const;
  const device::OpEntry& require(const Call& call) const;
  const device::OpEntry* find(std::string_view op) const;

  const device::Implementation& ops_;
  const device::Implementation& own_;
  const MissingOpPolicy& missing_;
  Stream stream_;
  CallObserver* observer_ = nullptr;
  CallExchange* exchange_ = nullptr;
  mutable std::int64_t calls_ = 0;
};

}  // namespace plumb::device::decode
