// SPDX-License-Identifier: Apache-2.0
//
// Drives one problem of any op on a simulated device, step by step: fill, launch, capture, judge.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "device/device.h"

namespace plumb::cases {

// A problem on a device. Tensors are uploaded; outputs hold the poison of the allocation.
class OpSession {
 public:
  OpSession(const OpDefinition& op, const Row& row, const Step& step, std::string_view platform,
            const device::Conditions& conditions = {})
      : device_(device::open_device(platform, conditions)),
        problem_(op.make_problem(row, device_->properties())),
        tensors_(problem_->make_tensors()),
        stream_(device_->create_stream()) {
    for (const HostTensor& tensor : tensors_.all()) allocate(tensor.spec(), tensor.bytes().size());
    state_ = problem_->make_state(addresses_);
    fill(step);
  }

  void fill(const Step& step) {
    problem_->fill(step, tensors_);
    for (HostTensor& tensor : tensors_.all()) {
      if (tensor.spec().role == Role::input) copy(tensor, tensor.bytes(), true);
    }
  }

  plumb_status launch(const device::OpEntry& entry) {
    return problem_->launch(entry, addresses_, state_.get(), stream_);
  }

  // Names of the kernels that a launch enqueues.
  std::vector<std::string> captured(const device::OpEntry& entry) {
    device_->begin_capture(stream_);
    EXPECT_EQ(launch(entry), PLUMB_OK);
    const device::Graph graph = device_->end_capture(stream_);
    std::vector<std::string> names;
    for (const device::GraphNode& node : device_->nodes(graph)) names.push_back(node.name);
    device_->destroy_graph(graph);
    return names;
  }

  // Reads all tensors back. Fails the test if an input was changed.
  const TensorSet& download() {
    for (HostTensor& tensor : tensors_.all()) {
      Bytes stored(tensor.bytes().size());
      copy(tensor, stored, false);
      if (tensor.spec().role == Role::input) {
        EXPECT_TRUE(stored == tensor.bytes()) << tensor.spec().name << " was written";
      }
      tensor.bytes() = stored;
    }
    EXPECT_TRUE(device_->check_guards().empty());
    return tensors_;
  }

  std::vector<TensorReport> judge(const Step& step, const device::OpEntry& entry) {
    return problem_->judge(step, download(), numerics_of(entry), entry.numerics);
  }

 private:
  static reference::Numerics numerics_of(const device::OpEntry& entry) {
    return {.product = reference::Format::bf16,
            .accumulator = reference::Format::f32,
            .chains = entry.numerics.chains,
            .probability = reference::Format::bf16,
            .function_ulp = entry.numerics.function_ulp};
  }

  void allocate(const TensorSpec& spec, std::size_t bytes) {
    const std::size_t row_bytes = static_cast<std::size_t>(spec.shape.back()) * size_of(spec.dtype);
    addresses_.set(
        spec.name,
        spec.sparse
            ? device_->allocate_sparse(
                  static_cast<std::size_t>(spec.placement.back() + 1) * row_bytes, spec.name)
            : device_->allocate(bytes, spec.name));
  }

  void copy(const HostTensor& tensor, Bytes& bytes, bool to_device) {
    auto* memory = addresses_.get<std::byte>(tensor.spec().name);
    const std::size_t rows = tensor.spec().sparse ? tensor.spec().placement.size() : 1;
    const std::size_t row_bytes = bytes.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto place =
          static_cast<std::size_t>(tensor.spec().sparse ? tensor.spec().placement[row] : 0);
      std::byte* on_device = memory + place * row_bytes;
      std::byte* on_host = bytes.data() + row * row_bytes;
      device_->copy(to_device ? on_device : on_host, to_device ? on_host : on_device, row_bytes,
                    stream_);
    }
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<Problem> problem_;
  TensorSet tensors_;
  DeviceTensors addresses_;
  device::Stream stream_;
  std::unique_ptr<OpState> state_;
};

}  // namespace plumb::cases
