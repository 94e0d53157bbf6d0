// SPDX-License-Identifier: Apache-2.0
//
// How a decode step calls ops: by name, through the table of an implementation, seen by whoever
// wants to look (detectors) or to meddle (faults).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "device/device.h"

namespace plumb::device::decode {

// An implementation lacks an op, or refuses a call of it. Nothing stands in for it silently.
class MissingOp : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Call {
  std::string_view op;  // of plumb_ops.h or device/decode/stand_ins.h
  std::string name;     // where in the step: "layer 1 attention"
  void* params;         // the op's struct
};

// Told while a step is enqueued, also while it is captured: what an observer enqueues on the stream
// becomes part of the graph.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // A part of a step ("metadata", "layers"), padded to so many tokens: the same calls every time.
  virtual void begin(std::string_view part, std::int64_t tokens) = 0;
  // A part whose calls are others every time, and are never captured: of a batch with prefills.
  virtual void begin_varying(std::string_view part) = 0;
  virtual void before(const Call& call, Stream stream) = 0;
  virtual void after(const Call& call, Stream stream) = 0;
};

class Caller {
 public:
  // `stand_ins` has what no implementation of ops has (device/decode/stand_ins.h), and no ops.
  Caller(const plumb_implementation& ops, const plumb_implementation& stand_ins, Stream stream)
      : ops_(ops), stand_ins_(stand_ins), stream_(stream) {}

  // Enqueues the op on the stream. Throws MissingOp.
  template <class Params>
  void operator()(std::string_view op, std::string name, Params params) const {
    params.stream = stream_;
    launch({op, std::move(name), &params});
  }

  // The calls that follow are those of a part of a step.
  void begin(std::string_view part, std::int64_t tokens) const {
    if (observer_ != nullptr) observer_->begin(part, tokens);
  }
  void begin_varying(std::string_view part) const {
    if (observer_ != nullptr) observer_->begin_varying(part);
  }
  Stream stream() const { return stream_; }
  void observe(CallObserver* observer) { observer_ = observer; }  // nullptr: nobody

 private:
  void launch(const Call& call) const;

  const plumb_implementation& ops_;
  const plumb_implementation& stand_ins_;
  Stream stream_;
  CallObserver* observer_ = nullptr;
};

}  // namespace plumb::device::decode
