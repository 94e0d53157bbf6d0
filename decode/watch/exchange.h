// SPDX-License-Identifier: Apache-2.0
//
// Replaces device ops by the reference inside a running decode step. On a simulated device a host
// function takes the place of the op's kernels in streams and graphs. When it runs, it reads the
// call's inputs and writes the right outputs. On a real device a host function cannot access device
// memory, so only eager calls are replaced, and they run at once.
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
  // The arguments outlive this object, and it outlives the graphs.
  Exchange(device::Device& device, const device::decode::Geometry& geometry,
           const device::Implementation& ops, std::shared_ptr<const Exchanged> which);

  // False for a call without rows: there is nothing to judge, and the op itself has nothing to do.
  bool takes(const device::decode::Call& call) override;
  // Throws device::DeviceError for a call that cannot be replaced.
  void launch(const device::decode::Call& call, device::Stream stream) override;

 private:
  // A call as it was enqueued. A graph may run it at any later time.
  struct One {
    Exchange* exchange;
    JudgedCall judged;
    std::string name;
    bool keeps_plan = false;  // the op would use the existing plan
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
