// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plumb::golden {

// Interprets the bytes as edits of a complete golden file. HDF5 applies them, so the file is
// well-formed with arbitrary contents. Then reads the file. Ends the process unless the result is a
// valid file or a GoldenError.
void fuzz_golden(std::span<const std::uint8_t> edits);

}  // namespace plumb::golden
