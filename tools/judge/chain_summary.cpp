// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/chain_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/judge/judge_report.h"

namespace plumb::tools {

namespace {

constexpr std::size_t kListedChains = 1000;

std::string difference_of(const trace::BrokenChain& chain) {
  return fmt::format("{} of {} elements differ ({} bytes), the first at {}", chain.elements,
                     chain.of_elements, chain.bytes, chain.first);
}

nlohmann::ordered_json json_of_chain(const trace::BrokenChain& chain, bool certain) {
  return {{"writer", call_id(chain.writer)},
          {"wrote", chain.wrote},
          {"reader", call_id(chain.reader)},
          {"read", chain.read},
          {"elements", chain.elements},
          {"of_elements", chain.of_elements},
          {"bytes", chain.bytes},
          {"first", chain.first},
          {"certain", certain}};
}

}  // namespace

void ChainSummary::add(trace::ChainReport report) {
  checked_ += report.checked;
  broken_ += report.broken;
  if (report.certain) certain_broken_ += report.broken;
  for (trace::BrokenChain& chain : report.found) {
    auto& first = report.certain ? first_certain_ : first_uncertain_;
    if (!first) first = chain;
    if (found_.size() < kListedChains) found_.emplace_back(std::move(chain), report.certain);
  }
}

std::string ChainSummary::failure_text(const Style& style) const {
  if (!first_certain_) return "";
  const trace::BrokenChain& chain = *first_certain_;
  return style.paint("FIRST BROKEN CHAIN", "31;1") +
         fmt::format(
             "  {}\n      {} differs from {} after call {}, {}, the last recorded write of this "
             "memory: {}\n",
             place_of(chain.reader), chain.read, chain.wrote, chain.writer.index,
             chain.writer.kind(), difference_of(chain));
}

std::string ChainSummary::text() const {
  if (checked_ == 0) return "";
  std::string text =
      fmt::format("chains: {} tensors were read from memory that a call had written", checked_);
  if (broken_ == 0) return text + ", all with the same bytes\n";
  text += fmt::format(", {} with other bytes\n", broken_);
  const std::int64_t uncertain = broken_ - certain_broken_;
  if (uncertain == 0) return text;
  const trace::BrokenChain& chain = *first_uncertain_;
  return text + fmt::format(
                    "        {} of them in steps that may have unrecorded writes, so they do not "
                    "fail. The "
                    "first is {} of call {} ({}): {}\n",
                    uncertain, chain.read, call_id(chain.reader), chain.reader.kind(),
                    difference_of(chain));
}

nlohmann::ordered_json ChainSummary::json() const {
  nlohmann::ordered_json json{{"checked", checked_},
                              {"broken", broken_},
                              {"failed", certain_broken_},
                              {"found", nlohmann::ordered_json::array()}};
  for (const auto& [chain, certain] : found_)
    json["found"].push_back(json_of_chain(chain, certain));
  return json;
}

std::string ChainSummary::junit() const {
  if (checked_ == 0) return "";
  if (!first_certain_) return "    <testcase name=\"chains\" classname=\"trace\"/>\n";
  return fmt::format(
      "    <testcase name=\"chains\" classname=\"trace\">\n      <failure message=\"{}\">{}"
      "</failure>\n    </testcase>\n",
      escape_xml(place_of(first_certain_->reader)), escape_xml(failure_text({.color = false})));
}

}  // namespace plumb::tools
