// SPDX-License-Identifier: Apache-2.0
//
// Which slots the attention of a token may be given, from the requests' own block tables: what no
// single op can know.
#pragma once

#include <optional>
#include <string>

#include "decode/engine/step_inputs.h"
#include "decode/recording/call_recorder.h"

namespace plumb::cases {

// Of a layer's sparse_mla_decode: the window's slots in order; C128A: all states in order; C4A: as
// many different states of the request as there are, up to k; V3.2: as many of its tokens. None for
// padding. The first token for which that does not hold, in a line.
std::optional<std::string> wrong_candidates(const CallRecorder::CallRecording& attention,
                                            const device::decode::StepPlan& plan,
                                            const device::decode::Geometry& geometry);

// Of a call that reads a layer's top-k: each row names different entries that its token may attend,
// as many as there are or as are kept, and -1 behind them.
struct WrongTopK {
  std::string op;  // that ought to have made it so
  std::string text;
};
std::optional<WrongTopK> wrong_top_k(const CallRecorder::CallRecording& reader,
                                     const device::decode::StepPlan& plan,
                                     const device::decode::Geometry& geometry);

}  // namespace plumb::cases
