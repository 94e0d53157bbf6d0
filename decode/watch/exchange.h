// SPDX-License-Identifier: Apache-2.0
//
// The reference in place of device ops, inside a running decode step. On a simulated device a host
// function stands in the stream, and in graphs, where the op's kernels would: whenever it runs, it
// reads the call's inputs and writes what the op should have made of them. On a real device a
// function on the host cannot look at the device's memory, so there eager calls alone are
// exchanged, at once.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/recording/call_tensors.h"
#include "decode/watch/exchanged.h"
#include "device/device.h"

namespace plumb::cases {

class Exchange final : public device::decode::CallExchange {
 public:
  // All outlive the exchange, which outlives the graphs.
  Exchange(device::Device& device, const device::decode::Geometry& geometry,
           const device::Implementation& ops, std::shared_ptr<const Exchanged> which);

  // Not a call without rows, of which nothing can be judged: the op itself has to do nothing.
  bool takes(const device::decode::Call& call) override;
  // Throws device::DeviceError for a call that cannot be exchanged.
  void launch(const device::decode::Call& call, device::Stream stream) override;

 private:
  // A call as it was enqueued. A graph may run it at any time.
  struct One {
    Exchange* exchange;
    JudgedCall judged;
    std::string name;
    bool keeps_plan = false;  // that it was given
  };
  static void run(void* one);

  Exchanged::Outputs right(const One& one, const TensorSet& tensors) const;
  void read(const Binding& from, HostTensor& to, device::Stream stream) const;
  void write(const RightOutputs& right, const Binding& to, HostTensor& output,
             device::Stream stream) const;
  void exchange(const One& one, device::Stream stream) const;

  device::Device& device_;
  const device::decode::Geometry& geometry_;
  const device::Implementation& ops_;
  std::shared_ptr<const Exchanged> which_;
  device::Properties properties_;
  std::optional<One> taken_;
  std::list<One> calls_;
};

}  // namespace plumb::cases
