// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plumb::trace {

// Takes one call of an example trace, which has a call of every op, changes it as the input bytes
// say (shapes, dtypes, numbers, tensor bytes), and judges it. Aborts unless the result is a report
// of printable lines, BadTrace or bad_alloc.
void fuzz_trace(std::span<const std::uint8_t> edits);

// In calls of every op, sets one integer that the kernel reads out of range or below zero: indices,
// lengths, slots, positions, blocks. Judges every `every`-th of these calls, starting at `first`,
// with the check of fuzz_trace(). Returns how many were judged.
int judge_hostile_integers(int first, int every);

}  // namespace plumb::trace
