// SPDX-License-Identifier: Apache-2.0
//
// A device that hands every call on to another one: what faults in a device's behaviour derive
// from.
#pragma once

#include <memory>
#include <utility>

#include "device/device.h"

namespace plumb::cases {

class DeviceDecorator : public device::Device {
 public:
  explicit DeviceDecorator(std::unique_ptr<device::Device> inner) : inner_(std::move(inner)) {}

  const device::Properties& properties() const override { return inner_->properties(); }
  void* allocate(std::size_t bytes, std::string_view label) override {
    return inner_->allocate(bytes, label);
  }
  void* allocate_sparse(std::size_t bytes, std::string_view label) override {
    return inner_->allocate_sparse(bytes, label);
  }
  void free(void* memory) override { inner_->free(memory); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) override { inner_->free_pinned(memory); }
  std::vector<device::GuardDamage> check_guards() override { return inner_->check_guards(); }
  device::Stream create_stream() override { return inner_->create_stream(); }
  void destroy_stream(device::Stream stream) override { inner_->destroy_stream(stream); }
  device::Event create_event() override { return inner_->create_event(); }
  void destroy_event(device::Event event) override { inner_->destroy_event(event); }
  void record(device::Event event, device::Stream stream) override {
    inner_->record(event, stream);
  }
  void wait(device::Stream stream, device::Event event) override { inner_->wait(stream, event); }
  void synchronize_event(device::Event event) override { inner_->synchronize_event(event); }
  void synchronize(device::Stream stream) override { inner_->synchronize(stream); }
  void synchronize() override { inner_->synchronize(); }
  void copy(void* to, const void* from, std::size_t bytes, device::Stream stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  void fill(void* to, std::uint8_t value, std::size_t bytes, device::Stream stream) override {
    inner_->fill(to, value, bytes, stream);
  }
  void call_host(void (*function)(void*), void* argument, device::Stream stream) override {
    inner_->call_host(function, argument, stream);
  }
  std::string take_launch_error() override { return inner_->take_launch_error(); }
  void begin_capture(device::Stream stream) override { inner_->begin_capture(stream); }
  bool capturing() override { return inner_->capturing(); }
  device::Graph end_capture(device::Stream stream) override { return inner_->end_capture(stream); }
  std::vector<device::GraphNode> nodes(device::Graph graph) override {
    return inner_->nodes(graph);
  }
  device::GraphExec instantiate(device::Graph graph) override { return inner_->instantiate(graph); }
  void replay(device::GraphExec graph, device::Stream stream) override {
    inner_->replay(graph, stream);
  }
  void destroy_graph(device::Graph graph) override { inner_->destroy_graph(graph); }
  void destroy_graph_exec(device::GraphExec graph) override { inner_->destroy_graph_exec(graph); }

 private:
  std::unique_ptr<device::Device> inner_;
};

}  // namespace plumb::cases
