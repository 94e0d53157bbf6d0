// SPDX-License-Identifier: Apache-2.0
//
// Which slots the attention of a token may be given, from the requests' own block tables: what no
// single op can know.
#pragma once

#include <optional>
#include <string>

#include "cases/decode/taps.h"
#include "device/decode/step_inputs.h"

namespace plumb::cases {

// Of a layer's sparse_mla_decode: the window's slots in order; C128A: all states in order; C4A: as
// many different states of the request as there are, up to k. None for padding. The first token
// for which that does not hold, in a line.
std::optional<std::string> wrong_candidates(const Taps::Tap& attention,
                                            const device::decode::StepPlan& plan,
                                            const device::decode::Geometry& geometry);

}  // namespace plumb::cases
