// SPDX-License-Identifier: Apache-2.0
//
// Recognises wrong rows that the launch did not write: they still hold the poison (bytes that
// outputs hold before the launch), or the result of an earlier step. TensorSpec::clues has both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb::cases {

struct WrongRows;
class HostTensor;

// Report text for an element that holds the poison after the launch. An addition to NaN or to a
// huge number leaves the poison too; one verdict cannot separate the two (cases/studies/contrast.h
// can).
inline constexpr std::string_view kNeverWritten = "never written (still holds plumb's poison)";
// A second possible cause, if the simulator's streams run their work late: the launcher wrote the
// output at once instead of in its stream, and the stream poisoned the output later.
inline constexpr std::string_view kOrTooEarly =
    ", or written before the stream reached this launch";

// True if every byte of a row holds the poison of the launch. False if the poison is unknown or
// zero.
bool row_holds_poison(const HostTensor& stored, std::int64_t row);
// Text if all, or nearly all, wrong elements hold the poison.
std::optional<std::string> never_written(const WrongRows& view);
// Text with the number of wrong elements that hold the poison, if there are any.
std::optional<std::string> partly_written(const WrongRows& view);
// Completes a pattern for a report: puts kOrTooEarly behind kNeverWritten, unless streams run their
// work early (at once).
std::string under_streams(std::string pattern, bool streams_are_early);
// Text if all wrong elements hold a poison that may also be a result: zero, -1, or any byte of a u8
// output.
std::optional<std::string> as_before(const WrongRows& view);
std::optional<std::string> earlier_step(const WrongRows& view);

}  // namespace plumb::cases
