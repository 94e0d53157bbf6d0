// SPDX-License-Identifier: Apache-2.0
//
// A decode engine (decode/engine) on a simulated device, for tests of steps with prefills.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/recording/call_recorder.h"

namespace plumb::tests {

using cases::CallRecorder;
using cases::HostTensor;
using cases::TensorReport;
using device::decode::Engine;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::Padding;
using device::decode::Policies;
using device::decode::Scheduled;
using device::decode::small_geometry;
using Batch = std::vector<Scheduled>;
using Rows = std::vector<std::uint16_t>;

inline Scheduled prefill(std::uint64_t request, std::int64_t tokens) {
  return {request, tokens, true};
}

struct PrefillSetting {
  std::string platform;
  Geometry geometry = small_geometry(8, 0, 160);
  Policies policies = {};
  device::Conditions conditions = {};
  GraphMode mode = GraphMode::none;
};

// An engine on its own device. A request that a step names and that was not admitted is admitted
// with no tokens.
class PrefillServing {
 public:
  explicit PrefillServing(const PrefillSetting& setting)
      : device_(device::open_device(setting.platform, setting.conditions)),
        ops_(setting.conditions.checked ? device::checked_implementation(setting.platform)
                                        : device::builtin_implementation(setting.platform)),
        engine_(*device_, ops_, setting.geometry, setting.mode, setting.policies),
        recorder_(*device_, engine_.geometry(), ops_, engine_.temporaries()) {}

  void admit(std::uint64_t request, std::int64_t tokens) {
    engine_.admit(request, tokens);
    admitted_.insert(request);
  }
  void observe() { engine_.observe(&recorder_); }

  void step(const Batch& batch) {
    admit_new(batch);
    engine_.step(batch);
    device_->synchronize();
  }
  void step_padded(const Batch& batch, const Padding& padding) {
    admit_new(batch);
    engine_.step_eagerly(batch, padding);
    device_->synchronize();
  }

  // Recorded calls of the latest step.
  std::vector<const CallRecorder::CallRecording*> calls() {
    std::vector<const CallRecorder::CallRecording*> all;
    for (const auto& part : engine_.parts()) {
      for (const auto& call : recorder_.fetch(part)) all.push_back(call.get());
    }
    return all;
  }
  Rows out() {
    const std::int64_t tokens = engine_.plan().live_tokens;
    return read<std::uint16_t>(engine_.out(), tokens * engine_.geometry().hidden);
  }
  // Contents of the engine's memory block with this label.
  template <class T>
  std::vector<T> block(const std::string& label) {
    for (const auto& block : engine_.memory().blocks()) {
      if (block.label != label) continue;
      return read<T>(block.address, static_cast<std::int64_t>(block.bytes / sizeof(T)));
    }
    throw std::out_of_range(label);
  }
  std::vector<std::string> caches() const {
    std::vector<std::string> labels;
    for (const auto& block : engine_.memory().blocks()) {
      if (block.label.ends_with(" cache")) labels.push_back(block.label);
    }
    return labels;
  }
  Engine& engine() { return engine_; }
  device::Device& device() { return *device_; }

 private:
  void admit_new(const Batch& batch) {
    for (const Scheduled& one : batch) {
      if (!admitted_.contains(one.request)) admit(one.request, 0);
    }
  }
  template <class T>
  std::vector<T> read(const void* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_->copy(values.data(), from, values.size() * sizeof(T), engine_.stream());
    return values;
  }

  std::unique_ptr<device::Device> device_;
  const device::Implementation& ops_;
  Engine engine_;
  CallRecorder recorder_;
  std::set<std::uint64_t> admitted_;
};

using Calls = std::vector<const CallRecorder::CallRecording*>;

inline std::string failures(const Calls& calls) {
  std::string text;
  for (const CallRecorder::CallRecording* call : calls) {
    for (const TensorReport& report : call->judge()) {
      for (const std::string& line : report.failures) text += call->place.name + ": " + line + "\n";
    }
  }
  return text;
}

inline std::int64_t count_of(const Calls& calls, std::string_view op) {
  return std::count_if(calls.begin(), calls.end(),
                       [&](const CallRecorder::CallRecording* call) { return call->op == op; });
}

// Number of entries in the prefills' ragged lists that name no row of the workspace. Right lists
// have none, because each is full.
inline std::int64_t candidates_of_nobody(const Calls& calls) {
  std::int64_t count = 0;
  for (const CallRecorder::CallRecording* call : calls) {
    if (call->op != "sparse_mla_prefill") continue;
    const auto* indices = call->tensors.at("kv_indices").data<std::int32_t>();
    const HostTensor& indptr = call->tensors.at("kv_indptr");
    const std::int64_t end = indptr.data<std::int32_t>()[indptr.elements() - 1];
    const std::int64_t rows = call->tensors.at("kv").rows();
    count += std::count_if(indices, indices + end,
                           [&](std::int32_t index) { return index < 0 || index >= rows; });
  }
  return count;
}

}  // namespace plumb::tests
