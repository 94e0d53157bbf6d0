// SPDX-License-Identifier: Apache-2.0
//
// The copies that the recorder of a decode step makes: in captures only nodes of the graph, and
// none in a step that runs nothing.
#include "decode/recording/call_recorder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/tensors/shapes_only.h"
#include "device/forwarding_device.h"
#include "tests/support/decode_serving.h"

namespace plumb::tests {
namespace {

using device::decode::GraphMode;

// Counts copies to sparse memory, which only the recorder has here.
class CopyCounter final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  void* allocate_sparse(std::size_t bytes, std::string_view label) override {
    void* const memory = ForwardingDevice::allocate_sparse(bytes, label);
    blocks_.emplace_back(static_cast<std::byte*>(memory), bytes);
    return memory;
  }
  void copy(void* to, const void* from, std::size_t bytes, device::Stream stream) override {
    if (is_counted(static_cast<std::byte*>(to))) ++(capturing() ? captured : made);
    ForwardingDevice::copy(to, from, bytes, stream);
  }

  int captured = 0, made = 0;

 private:
  bool is_counted(const std::byte* address) const {
    for (const auto& [begin, bytes] : blocks_) {
      const bool behind = std::less<>()(address, begin);
      if (!behind && std::less<>()(address, begin + bytes)) return true;
    }
    return false;
  }

  std::vector<std::pair<const std::byte*, std::size_t>> blocks_;
};

std::unique_ptr<device::Device> counted(std::unique_ptr<device::Device> device) {
  return std::make_unique<CopyCounter>(std::move(device));
}

struct RecordedServing : Serving {
  explicit RecordedServing(GraphMode mode)
      : Serving({.mode = mode, .wrap = counted}),
        counter(dynamic_cast<CopyCounter&>(*device)),
        recorder(*device, engine.geometry(), ops, engine.temporaries()) {
    engine.observe(&recorder);
  }

  CopyCounter& counter;
  cases::CallRecorder recorder;
};

class CapturedCopies : public testing::TestWithParam<GraphMode> {};

TEST_P(CapturedCopies, AreNodesOfTheGraph) {
  RecordedServing serving(GetParam());
  serving.engine.capture();
  EXPECT_EQ(serving.counter.made, 0) << "a warm-up, or a segment that breaks the capture";
  EXPECT_GT(serving.counter.captured, 0);
}

TEST_P(CapturedCopies, AreWhatAReplayReadAndWrote) {
  RecordedServing serving(GetParam());
  serving.engine.capture();
  serving.admit_all();
  serving.recorder.poison(serving.engine.stream());
  serving.engine.step(Ids{1, 2});
  serving.device->synchronize();
  EXPECT_TRUE(serving.recorder.has_copies(serving.engine.target().parts().front()));
  EXPECT_EQ(failures(serving.recorder, serving.engine), "");
}

TEST_P(CapturedCopies, AreMissingWithoutAReplay) {
  RecordedServing serving(GetParam());
  serving.engine.capture();
  serving.admit_all();
  serving.engine.step(Ids{1, 2});
  const device::decode::StepPart part = serving.engine.target().parts().front();
  serving.device->synchronize();
  serving.recorder.fetch(part);
  serving.recorder.poison(serving.engine.stream());
  serving.device->synchronize();
  EXPECT_FALSE(serving.recorder.has_copies(part));
}

INSTANTIATE_TEST_SUITE_P(Modes, CapturedCopies,
                         testing::Values(GraphMode::full, GraphMode::piecewise,
                                         GraphMode::breakable));

TEST(ShapesOnly, LeavesOutTheBytesOfNewTensors) {
  const cases::TensorSpec spec{.name = "x", .dtype = cases::Dtype::f32, .shape = {3, 5}};
  {
    const cases::ShapesOnly shapes;
    const cases::HostTensor tensor(spec);
    EXPECT_TRUE(tensor.bytes().empty());
    EXPECT_EQ(tensor.elements(), 15);
  }
  EXPECT_EQ(cases::HostTensor(spec).bytes().size(), 60U);
}

}  // namespace
}  // namespace plumb::tests
