// SPDX-License-Identifier: Apache-2.0
//
// How a decode step calls ops: by name, through the table of an implementation, seen by whoever
// wants to look (detectors) or to meddle (faults).
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
// Nothing stands in for it silently.
class RefusedCall : public std::runtime_error {
 public:
  RefusedCall(std::string_view refused, const std::string& what)
      : std::runtime_error(what), op(refused) {}
  std::string op;
};

// Where in a step an op is called. The name is for reports only: checks and seeds use the numbers.
struct CallPlace {
  CallPlace() = default;
  CallPlace(std::string text) : name(std::move(text)) {}
  CallPlace(const char* text) : name(text) {}
  // The same place under a longer name.
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
  int layer = -1;      // of the target model, or of the drafter; -1: of no layer
  int chunk = -1;      // of a prefill; -1: of none
  bool draft = false;  // a call of the drafter
};
// "layer 2 attention"
CallPlace layer_place(std::size_t layer, std::string_view what);

struct Call {
  std::string_view op;  // of plumb_ops.h or device/kernels/placeholders/placeholder_kernels.h
  CallPlace place;
  void* params;                          // the op's struct
  device::LaunchState* state = nullptr;  // of an op that has one
  void** own = nullptr;                  // where its parameters have the implementation's
};

// A part of a step ("metadata", "layers"), of so many tokens with padding. Its calls are the same
// every time, or vary: those of a batch that is not uniform, which are never captured.
struct StepPart {
  std::string name;
  std::int64_t tokens = 0;
  bool varies = false;
  bool replayed = false;      // by a graph, of a step that is over
  bool fills = false;         // caches of a request that is admitted: no part of a step
  std::uint64_t request = 0;  // the one whose caches the target fills; 0: no such part

  bool operator==(const StepPart&) const = default;
};

// Told while a step is enqueued, also while it is captured: what an observer enqueues on the stream
// becomes part of the graph.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begin(const StepPart& part) = 0;
  virtual void before(const Call& call, Stream stream) = 0;
  virtual void after(const Call& call, Stream stream) = 0;
};

// Who runs something else in place of an op, captured or not.
class CallExchange {
 public:
  virtual ~CallExchange() = default;
  virtual bool takes(const Call& call) = 0;
  virtual void launch(const Call& call, Stream stream) = 0;  // the one that it has just taken
};

// What becomes of a call of an op that the implementation lacks.
class MissingOpPolicy {
 public:
  virtual ~MissingOpPolicy() = default;
  // Nothing runs instead: the call throws. plumb's own op in its place gives right results, of
  // which nobody knows whose they are   [vLLM #42810].
  virtual const device::OpEntry* instead(std::string_view /*op*/,
                                         const device::Implementation& /*own*/) const {
    return nullptr;
  }
};

class Caller {
 public:
  // `own`: plumb's table, for what no implementation of ops has
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

  // The same for an op with host state.
  template <class Params>
  void operator()(std::string_view op, CallPlace place, Params params,
                  device::LaunchState& state) const {
    params.stream = stream_;
    launch({op, std::move(place), &params, &state, &params.state});
  }

  // The calls that follow are those of a part of a step.
  void begin(const StepPart& part) const {
    if (observer_ != nullptr) observer_->begin(part);
  }
  // Whether the implementation of the op has made this choice of its contract: "outputs=out".
  bool chooses(std::string_view op, std::string_view choice) const;
  Stream stream() const { return stream_; }
  std::int64_t calls() const { return calls_; }                    // enqueued so far
  void observe(CallObserver* observer) { observer_ = observer; }   // nullptr: nobody
  void exchange(CallExchange* exchange) { exchange_ = exchange; }  // nullptr: every op runs

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
