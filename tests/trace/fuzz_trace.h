// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plumb::trace {

// Takes the bytes for edits of a whole trace, which has a call of every op: shapes, dtypes,
// numbers, and the bytes of tensors. Judges one call of it. Anything but a report of printable
// lines, or BadTrace, ends the process.
void fuzz_trace(std::span<const std::uint8_t> edits);

// Calls of every op, in each of which one integer that the kernel reads is beyond everything or
// below zero: indices, lengths, slots, positions, blocks. One of `every` of these calls is judged,
// counted from `first`. As above. Returns how many were judged.
int judge_hostile_integers(int first, int every);

}  // namespace plumb::trace
