// SPDX-License-Identifier: Apache-2.0
//
// Checks that the entries which the model of requests expects are written in every cache: in that
// of each layer, of the indexer and of the drafter.
#pragma once

#include <optional>
#include <vector>

#include "decode/checks/requests/request_model.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

// `before`, `after`: memory of the engine around the writes. The first entry whose slot still holds
// the bytes of another one. Entries of different tokens have different bytes.
std::optional<WrongPlan> unwritten_entry(const WatchedEngine& watched, const Snapshot& before,
                                         const Snapshot& after,
                                         const std::vector<TagWrite>& writes);

}  // namespace plumb::cases
