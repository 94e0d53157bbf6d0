// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/injections.h"

#include "faults/decode/decode_faults.h"
#include "faults/decode/decode_mutants.h"

namespace plumb::cases {

using device::decode::GraphMode;

Inject mutant(std::string_view name) {
  return [by = decode_mutant(name)](DecodeSetup setup) {
    if (setup.platform.starts_with("cuda-") && by.cuda.launch == nullptr) {
      throw NotOnThisPlatform("built without PLUMB_CUDA_MUTANTS");
    }
    setup.implementation = with_op_replaced(by, setup.implementation);
    return setup;
  };
}

Inject changed_call(const Replacement& by) {
  return [by](DecodeSetup setup) {
    setup.implementation = with_op_replaced(by, setup.implementation);
    return setup;
  };
}

Inject both(Inject first, Inject second) {
  return [first = std::move(first), second = std::move(second)](DecodeSetup setup) {
    return second(first(std::move(setup)));
  };
}

Inject with_requests(std::int64_t requests) {
  return [requests](DecodeSetup setup) {
    setup.geometry = device::decode::small_geometry(requests);
    setup.geometry.capture_sizes = {requests};
    return setup;
  };
}

Inject with_drafter() {
  return [](DecodeSetup setup) {
    setup.geometry.drafter = true;
    return setup;
  };
}

Inject with_prompts() {
  return [](DecodeSetup setup) {
    setup.geometry = device::decode::small_geometry(4, 3, 32);
    setup.geometry.capture_sizes = {4, 16};
    setup.mode = GraphMode::full_and_piecewise;
    return setup;
  };
}

Inject with_fnuz_caches() {
  return [](DecodeSetup setup) {
    setup.geometry.fnuz = true;
    return setup;
  };
}

Inject with_late_device() {
  return [](DecodeSetup setup) {
    setup.conditions.policy = device::Policy::late;
    setup.environment.delays = !setup.platform.starts_with("sim-");
    return setup;
  };
}

Inject with_reverse_order() {
  return [](DecodeSetup setup) {
    setup.conditions.order = device::Order::reverse;
    return setup;
  };
}

Inject of_v32() {
  return [](DecodeSetup setup) {
    setup.geometry = device::decode::small_v32_geometry(8);
    setup.geometry.max_batched_tokens = 48;  // so that requests are admitted in few parts
    return setup;
  };
}

Inject with_uneven_decodes() {
  return [](DecodeSetup setup) {
    setup.geometry = device::decode::small_v32_geometry(4, 3);
    setup.geometry.max_batched_tokens = 48;
    setup.mode = GraphMode::piecewise;
    return setup;
  };
}

Inject of_v32(const device::decode::V32Policies& policies) {
  return both(of_v32(), [policies](DecodeSetup setup) {
    setup.policies.v32 = policies;
    return setup;
  });
}

}  // namespace plumb::cases
