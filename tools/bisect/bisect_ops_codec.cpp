// SPDX-License-Identifier: Apache-2.0
#include "tools/bisect/bisect_ops_codec.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tools/bisect/bisect_ops_fields.h"

namespace plumb::tools {

std::string_view name_of(OpsQuestion question) {
  switch (question) {
    case OpsQuestion::watch: return "watch";
    case OpsQuestion::results: return "results";
    case OpsQuestion::twice: return "twice";
  }
  return "?";
}

PLUMB_ENUM_BY_NAME(OpsQuestion, 3)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpsRequest, question, platform, exchanged, second)

namespace {

using nlohmann::json;

void read(const json& entry, bisect::OpsAnswer& answer) { entry.get_to(answer); }
void read(const json& entry, TwiceAnswer& answer) { entry.get_to(answer); }

// JSON has no NaN or infinity: such values are null.
void read(const json& entry, std::vector<float>& results) {
  for (const json& value : entry.at("results")) {
    results.push_back(value.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                      : value.get<float>());
  }
}

}  // namespace

json journal_entry(const bisect::OpsAnswer& answer) {
  json entry = answer;
  entry["verdict"] = answer.clean() ? "nothing is found" : "something is found";
  return entry;
}

json journal_entry(const TwiceAnswer& answer) {
  json entry = answer;
  entry["verdict"] = !answer.failed.empty() ? answer.failed
                     : answer.difference    ? text_of(*answer.difference)
                                            : "no difference";
  return entry;
}

json journal_entry(const std::vector<float>& results) { return {{"results", results}}; }

template <class Answered>
Answered from_journal(const json& entry) {
  Answered answer;
  read(entry, answer);
  return answer;
}
template bisect::OpsAnswer from_journal(const json&);
template TwiceAnswer from_journal(const json&);
template std::vector<float> from_journal(const json&);

}  // namespace plumb::tools

PLUMB_MESSAGE(plumb::tools::OpsRequest)
PLUMB_MESSAGE(plumb::bisect::OpsAnswer)
PLUMB_MESSAGE(plumb::tools::TwiceAnswer)
PLUMB_MESSAGE(std::vector<float>)
