// SPDX-License-Identifier: Apache-2.0
//
// The same call in two runs of a decode step, bit for bit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decode/recording/call_recorder.h"

namespace plumb::cases {

// The first `count` of a part's `tokens`, in tensors that have a row per token.
struct TokenRows {
  std::int64_t tokens = 0, count = 0;
};

// Every byte of them, promised or not.
bool have_same_outputs(const CallRecorder::CallRecording& a, const CallRecorder::CallRecording& b);

// The first output that differs in what the op promises, in a line; nothing if none does. What an
// op keeps of a tensor that it changes in place is not compared: it is older than the call. Rows of
// tokens behind the `defined` ones may hold anything.
std::optional<std::string> output_difference(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined);

// The report of the first such output, in which `what` is wrong.
std::optional<TensorReport> different_output(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined, std::string_view what);

// The same, but only of tensors that have a row per token.
std::optional<std::string> live_row_difference(const CallRecorder::CallRecording& got,
                                               const CallRecorder::CallRecording& expected,
                                               const TokenRows& live);

// The first input whose bytes differ, promised or not, and where each call has it.
struct DifferentInput {
  std::string tensor;
  const std::byte *got, *expected;
};
std::optional<DifferentInput> different_input(const CallRecorder::CallRecording& got,
                                              const CallRecorder::CallRecording& expected);

}  // namespace plumb::cases
