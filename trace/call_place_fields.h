// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "process/codec_fields.h"
#include "trace/call_place.h"

namespace plumb::trace {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallPlace, rank, step, index, calls, op, name, layer, stream,
                                   replay)

}  // namespace plumb::trace
