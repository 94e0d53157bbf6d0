// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/op_run.h"

#include <algorithm>

#include "device/device.h"

namespace plumb::cases {

namespace {

class OneCall {
 public:
  OneCall(const Problem& problem, const std::string& platform, const CaseEvidence& evidence,
          bool checked)
      : problem_(problem), evidence_(evidence) {
    device::Conditions conditions = evidence.point.conditions;
    conditions.checked = checked;
    conditions.page_guards = false;
    device_ = device::open_device(platform, conditions);
    stream_ = device_->create_stream();
    for (const HostTensor& tensor : evidence.tensors.all()) place(tensor);
    state_ = problem.make_state(addresses_);
  }

  void launch(const device::OpEntry& entry) {
    const plumb_status status = problem_.launch(entry, addresses_, state_.get(), stream_);
    if (status == PLUMB_OK) return;
    throw device::DeviceError(device::ErrorKind::other, device_->take_launch_error());
  }

  TensorSet fetch() {
    TensorSet got = evidence_.tensors;
    for (HostTensor& tensor : got.all()) {
      if (tensor.spec().role == Role::input || tensor.bytes().empty()) continue;
      const auto* from = addresses_.get<std::byte>(tensor.spec().name);
      for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t bytes) {
        device_->copy(tensor.bytes().data() + here, from + there, bytes, stream_);
      });
    }
    device_->synchronize(stream_);
    return got;
  }

 private:
  void place(const HostTensor& tensor) {
    const TensorSpec& spec = tensor.spec();
    const std::size_t bytes = std::max<std::size_t>(device_bytes(tensor), 1);
    auto* memory = static_cast<std::byte*>(spec.sparse ? device_->allocate_sparse(bytes, spec.name)
                                                       : device_->allocate(bytes, spec.name));
    addresses_.set(spec.name, memory);
    const bool given = spec.role == Role::input || !spec.starts_as.empty();
    const HostTensor& from = spec.starts_as.empty() ? tensor : evidence_.tensors.at(spec.starts_as);
    for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t count) {
      if (given) {
        device_->copy(memory + there, from.bytes().data() + here, count, stream_);
      } else if (spec.role != Role::state) {
        device_->fill(memory + there, static_cast<std::uint8_t>(evidence_.poison), count, stream_);
      }
    });
  }

  const Problem& problem_;
  const CaseEvidence& evidence_;
  std::unique_ptr<device::Device> device_;
  device::Stream stream_ = nullptr;
  DeviceTensors addresses_;
  std::shared_ptr<OpState> state_;
};

}  // namespace

TensorSet run_once(const Problem& problem, const device::OpEntry& entry,
                   const std::string& platform, const CaseEvidence& evidence, CallMode mode) {
  OneCall call(problem, platform, evidence, mode.checked);
  for (int i = 0; i < mode.times; ++i) call.launch(entry);
  return call.fetch();
}

std::string simulated_like(const std::string& platform) {
  const device::Properties wanted = device::open_device(platform)->properties();
  if (wanted.simulated) return platform;
  std::string like = "sim-sm90";
  for (const std::string& name : device::known_platforms()) {
    if (!device::why_unavailable(name).empty()) continue;
    const device::Properties one = device::open_device(name)->properties();
    if (one.simulated && one.fp8 == wanted.fp8 && one.wave_size == wanted.wave_size) like = name;
  }
  return like;
}

Closeness closeness_to_simulator(const std::string& platform) {
  return simulated_like(platform) == platform ? Closeness::bits : Closeness::ulps;
}

}  // namespace plumb::cases
