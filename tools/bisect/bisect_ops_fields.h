// SPDX-License-Identifier: Apache-2.0
//
// Lists the fields of the answers of plumb bisect ops (tools/result_fields.h).
#pragma once

#include "bisect/ops/ops_search.h"
#include "tools/bisect/bisect_ops_worker.h"
#include "tools/result_fields.h"

namespace plumb::bisect {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpsAnswer, findings, died, skipped)

}  // namespace plumb::bisect

namespace plumb::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TwiceAnswer, difference, failed)

}  // namespace plumb::tools
