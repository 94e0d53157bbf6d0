// SPDX-License-Identifier: Apache-2.0
//
// A golden file as text, for git diff (docs/goldens.md).
#pragma once

#include <functional>
#include <string_view>

#include "golden/model.h"

namespace plumb::tools {

// Passes one line at a time to `put`. Equal contents give equal text. Elements stand in lines with
// their row and columns, so a moved element changes its own line and those of its digests.
void write_text(const golden::GoldenFile& file, const std::function<void(std::string_view)>& put);

}  // namespace plumb::tools
