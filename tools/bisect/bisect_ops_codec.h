// SPDX-License-Identifier: Apache-2.0
//
// The answers of plumb bisect ops: as messages, and as JSON in its state file.
#pragma once

#include <string>
#include <vector>

#include "bisect/search/journal.h"
#include "tools/bisect/bisect_ops_worker.h"
#include "tools/wire.h"

namespace plumb::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TwiceAnswer, difference, failed)

// Answers of a state file, each with its verdict in words for plumb bisect explain.
nlohmann::json journal_entry(const bisect::OpsAnswer& answer);
nlohmann::json journal_entry(const TwiceAnswer& answer);
nlohmann::json journal_entry(const std::vector<float>& results);

// The answer of such an entry. Throws bisect::BadJournal, which names the file and the key, if the
// entry holds anything else: another version of plumb wrote it, or it was damaged.
template <class Answered>
Answered from_journal(const nlohmann::json& entry, const bisect::Journal& journal,
                      const std::string& key);

}  // namespace plumb::tools
