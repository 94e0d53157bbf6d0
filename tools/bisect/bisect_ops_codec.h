// SPDX-License-Identifier: Apache-2.0
//
// Codecs of the questions and answers of plumb bisect ops: messages to workers, and JSON of the
// state file.
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
  bisect::Ops exchanged;   // replaced ops, for `watch` and `results`
  std::size_t second = 0;  // for `twice`: number of the second run
};

// Answers as entries of a state file, with the verdict in words for plumb bisect explain.
nlohmann::json journal_entry(const bisect::OpsAnswer& answer);
nlohmann::json journal_entry(const TwiceAnswer& answer);
nlohmann::json journal_entry(const std::vector<float>& results);

// Reads the answer from an entry. Throws nlohmann::json::exception if the entry is malformed.
template <class Answered>
Answered from_journal(const nlohmann::json& entry);

}  // namespace plumb::tools
