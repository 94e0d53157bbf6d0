// SPDX-License-Identifier: Apache-2.0
//
// Records of the ops that only a step of V3.2 calls.
#pragma once

#include <optional>

#include "decode/recording/call_record.h"

namespace plumb::cases {

// Nothing for another op.
std::optional<CallRecord> v32_record_of(const device::decode::Call& call,
                                        const device::decode::Geometry& geometry);

}  // namespace plumb::cases
