// SPDX-License-Identifier: Apache-2.0
//
// A golden file between two processes of plumb, as CBOR.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "golden/model.h"

namespace plumb::golden {

std::vector<std::uint8_t> to_cbor(const GoldenFile& file);
// Validated. Throws GoldenError that begins with `name`.
GoldenFile from_cbor(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace plumb::golden
