// SPDX-License-Identifier: Apache-2.0
//
// Wrong rows that the launch did not write: they hold what was there before it, or what an earlier
// step stored. TensorSpec::clues says what that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb::cases {

struct WrongRows;
class HostTensor;

// How reports call an element of an output that holds the poison after the launch. An addition to
// NaN or to a huge number leaves it too: one verdict cannot tell (cases/studies/contrast.h can).
inline constexpr std::string_view kNeverWritten = "never written (still holds plumb's poison)";
// What else may have happened where work on a stream begins late: the launcher did it at once.
inline constexpr std::string_view kOrTooEarly =
    ", or written before the stream reached this launch";

// Does every byte of a row hold the poison of the launch? Not where it is unknown.
bool row_holds_poison(const HostTensor& stored, std::int64_t row);
// Where all wrong elements hold the poison; where nearly all do, how many.
std::optional<std::string> never_written(const WrongRows& view);
// How many of the wrong elements hold the poison, if any does.
std::optional<std::string> partly_written(const WrongRows& view);
// A pattern as a report has it, for a launch on streams that begin their work early, or late.
std::string under_streams(std::string pattern, bool streams_are_early);
// The same where what was there may be a result: zeros, and -1.
std::optional<std::string> as_before(const WrongRows& view);
std::optional<std::string> earlier_step(const WrongRows& view);

}  // namespace plumb::cases
