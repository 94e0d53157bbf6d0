// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/address_checks.h"

namespace plumb::cases {

void check_addresses(const CallRecorder::CallRecording& call, WatchedStep& step) {
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (copy.allocation == step.twin.engine.temporaries().allocation_of(copy.from)) continue;
    step.findings.add(
        Detector::address, step.calls, call.op, call.place.name,
        copy.tensor +
            " was captured at an address that now belongs to another allocation or to none");
    return;
  }
}

}  // namespace plumb::cases
