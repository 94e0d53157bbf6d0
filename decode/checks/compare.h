// SPDX-License-Identifier: Apache-2.0
//
// Compares one call in two runs of a decode step, bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decode/recording/call_recorder.h"

namespace plumb::cases {

// The first `count` of the `tokens` tokens of a part. Applies to tensors that have a row per token.
struct TokenRows {
  std::int64_t tokens = 0, count = 0;
};

// Whether all output bytes are equal, including those that the op does not promise.
bool have_same_outputs(const CallRecorder::CallRecording& a, const CallRecorder::CallRecording& b);

// A line about the first output whose promised elements (those that the op's contract defines)
// differ; nullopt: none. Elements of an in-place tensor that the op leaves unchanged are not
// compared, because they are older than the call. Rows of tokens after the `defined` ones are not
// compared.
std::optional<std::string> output_difference(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined);

// The report of the first output whose promised elements differ. `what`: the word for the failure,
// such as "differs".
std::optional<TensorReport> different_output(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined, std::string_view what);

// As output_difference, but compares only tensors of which `got` has a copy.
std::optional<std::string> live_row_difference(const CallRecorder::CallRecording& got,
                                               const CallRecorder::CallRecording& expected,
                                               const TokenRows& live);

// Digest (XXH3-64) of the promised elements of all outputs. Bytes of an in-place tensor that the
// call leaves unchanged count as zeros: they are older than the call.
std::uint64_t promised_digest(const CallRecorder::CallRecording& call, const TokenRows& defined);

// The first input with different bytes, promised or not, and its address in each call.
struct DifferentInput {
  std::string tensor;
  const std::byte *got, *expected;
};
std::optional<DifferentInput> different_input(const CallRecorder::CallRecording& got,
                                              const CallRecorder::CallRecording& expected);

}  // namespace plumb::cases
