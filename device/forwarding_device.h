// SPDX-License-Identifier: Apache-2.0
//
// A device that forwards every call to another one: the base class of decorators.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace plumb::device {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner)
      : owned_(std::move(inner)), inner_(owned_.get()) {}
  // Forwards to a device that outlives this one.
  explicit ForwardingDevice(Device& inner) : inner_(&inner) {}

  const Properties& properties() const override { return inner_->properties(); }

  void* allocate(std::size_t bytes, std::string_view label) override {
    return inner_->allocate(bytes, label);
  }
  void* allocate_sparse(std::size_t bytes, std::string_view label) override {
    return inner_->allocate_sparse(bytes, label);
  }
  void free(void* memory) override { inner_->free(memory); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) override { inner_->free_pinned(memory); }
  std::vector<GuardDamage> check_guards() override { return inner_->check_guards(); }

  Stream create_stream() override { return inner_->create_stream(); }
  void destroy_stream(Stream stream) override { inner_->destroy_stream(stream); }
  Event create_event() override { return inner_->create_event(); }
  void destroy_event(Event event) override { inner_->destroy_event(event); }
  void record(Event event, Stream stream) override { inner_->record(event, stream); }
  void wait(Stream stream, Event event) override { inner_->wait(stream, event); }
  void synchronize_event(Event event) override { inner_->synchronize_event(event); }
  Event create_timing_event() override { return inner_->create_timing_event(); }
  double elapsed_seconds(Event from, Event to) override {
    return inner_->elapsed_seconds(from, to);
  }
  void synchronize(Stream stream) override { inner_->synchronize(stream); }
  void synchronize() override { inner_->synchronize(); }

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) override {
    inner_->fill(to, value, bytes, stream);
  }
  void call_host(void (*function)(void*), void* argument, Stream stream) override {
    inner_->call_host(function, argument, stream);
  }
  void launch_host(std::string_view name, void (*function)(void*), void* argument,
                   std::span<const std::byte> words, Stream stream) override {
    inner_->launch_host(name, function, argument, words, stream);
  }
  std::string take_launch_error() override { return inner_->take_launch_error(); }

  void begin_capture(Stream stream) override { inner_->begin_capture(stream); }
  bool capturing() override { return inner_->capturing(); }
  Graph end_capture(Stream stream) override { return inner_->end_capture(stream); }
  std::vector<GraphNode> nodes(Graph graph) override { return inner_->nodes(graph); }
  GraphExec instantiate(Graph graph) override { return inner_->instantiate(graph); }
  void replay(GraphExec graph, Stream stream) override { inner_->replay(graph, stream); }
  void destroy_graph(Graph graph) override { inner_->destroy_graph(graph); }
  void destroy_graph_exec(GraphExec graph) override { inner_->destroy_graph_exec(graph); }
  void note_given_back(const void* begin, std::size_t bytes, std::string_view label) override {
    inner_->note_given_back(begin, bytes, label);
  }

 protected:
  Device& inner() { return *inner_; }

 private:
  std::unique_ptr<Device> owned_;
  Device* inner_;
};

}  // namespace plumb::device
