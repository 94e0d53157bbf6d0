// SPDX-License-Identifier: Apache-2.0
//
// Bytes that plumb writes where a value is gone or not yet there, and the words of findings about
// them. The diagnosis recognises these words.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb::device {

// Written over parameters after the launcher returned: large sizes, and addresses that cannot
// exist. No poison of a device or of a case has this byte.
inline constexpr std::uint8_t kGoneParameter = 0x7d;
// Byte of the poison of cases that is no usual value (cases/drivers/run.h).
inline constexpr std::uint8_t kHugePoison = 0x7b;

inline constexpr std::string_view kThroughNull = "through a null pointer";
inline constexpr std::string_view kReadsGoneParameters =
    "the bytes that plumb writes over parameters after the launcher returned";
inline constexpr std::string_view kReadsUnwritten = "plumb's poison of memory that was not written";
inline constexpr std::string_view kOfEarlierDevice = "of an earlier device";

}  // namespace plumb::device
