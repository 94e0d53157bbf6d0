// SPDX-License-Identifier: Apache-2.0
//
// Checks the slots that attention reads and that the compressor writes against the block tables of
// the requests. No single op can check this, because each takes its lists as given.
#pragma once

#include <optional>
#include <string>

#include "decode/engine/step_inputs.h"
#include "decode/recording/call_recorder.h"

namespace plumb::cases {

// Checks the candidate lists of a sparse_mla_decode call. Right lists: window slots in order;
// C128A: all states in order; C4A: min(k, number of states) distinct states of the request; V3.2:
// likewise of its tokens. Padding has empty lists. Returns a line about the first token with a
// wrong list.
std::optional<std::string> wrong_candidates(const CallRecorder::CallRecording& attention,
                                            const device::decode::StepPlan& plan,
                                            const device::decode::Geometry& geometry);

// The same for a sparse_mla_prefill call, whose candidates are rows of the workspace of its chunk:
// in order those of the states, and those of the tokens in the window.
std::optional<std::string> wrong_prefill_candidates(const CallRecorder::CallRecording& attention,
                                                    const device::decode::StepPlan& plan,
                                                    const device::decode::Geometry& geometry);

// A wrong top-k of a layer, found in a call that reads it. In a right one each row names distinct
// entries that its token may attend, min(k, number of entries) of them, and -1 after them.
struct WrongTopK {
  std::string op;  // the op to blame
  std::string text;
};
std::optional<WrongTopK> wrong_top_k(const CallRecorder::CallRecording& reader,
                                     const device::decode::StepPlan& plan,
                                     const device::decode::Geometry& geometry);

// Checks the slots of compressed states that a call of compress_norm_rope_insert is given: those of
// the states that live tokens complete, and -1 for all other tokens and for padding. Returns a line
// about the first wrong one.
std::optional<std::string> wrong_compressed_slot(const CallRecorder::CallRecording& compression,
                                                 const device::decode::StepPlan& plan,
                                                 const device::decode::Geometry& geometry);

}  // namespace plumb::cases
