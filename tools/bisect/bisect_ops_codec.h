// SPDX-License-Identifier: Apache-2.0
//
// The questions and answers of plumb bisect ops: as messages, and as JSON in its state file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bisect/search/journal.h"
#include "process/codec.h"
#include "tools/bisect/bisect_ops_worker.h"

namespace plumb::tools {

enum class OpsQuestion { watch, results, twice };
std::string_view name_of(OpsQuestion question);

struct OpsRequest {
  OpsQuestion question = OpsQuestion::watch;
  std::string platform;
  bisect::Ops exchanged;   // of watch and results
  std::size_t second = 0;  // of twice: the number of a second run
};

// Answers of a state file, each with its verdict in words for plumb bisect explain.
nlohmann::json journal_entry(const bisect::OpsAnswer& answer);
nlohmann::json journal_entry(const TwiceAnswer& answer);
nlohmann::json journal_entry(const std::vector<float>& results);

// The answer of such an entry. Throws nlohmann::json::exception if it holds anything else.
template <class Answered>
Answered from_journal(const nlohmann::json& entry);

}  // namespace plumb::tools
