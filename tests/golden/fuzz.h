// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plumb::golden {

// Takes the bytes for a list of edits of a whole golden file, made by HDF5 itself, so that what
// comes out is well-formed and may hold anything; reads it. What is neither refused by GoldenError
// nor a valid file ends the process.
void fuzz_golden(std::span<const std::uint8_t> edits);

}  // namespace plumb::golden
