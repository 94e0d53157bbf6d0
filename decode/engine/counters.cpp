// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/counters.h"

#include <utility>

namespace plumb::device::decode {

namespace {

constexpr std::pair<std::int64_t Counters::*, const char*> kFields[] = {
    {&Counters::steps, "steps"},
    {&Counters::eager_steps, "eager_steps"},
    {&Counters::captures, "captures"},
    {&Counters::recaptures, "recaptures"},
    {&Counters::graph_launches, "graph_launches"},
    {&Counters::drafter_eager_steps, "drafter_eager_steps"},
    {&Counters::drafter_graph_launches, "drafter_graph_launches"},
    {&Counters::oversized_steps, "oversized_steps"},
    {&Counters::metadata_launches, "metadata_launches"},
    {&Counters::plans_made, "plans_made"},
    {&Counters::plans_kept, "plans_kept"},
    {&Counters::host_synchronizations, "host_synchronizations"},
    {&Counters::event_waits, "event_waits"}};

}  // namespace

Counters operator-(Counters now, const Counters& before) {
  for (const auto& [field, name] : kFields) now.*field -= before.*field;
  return now;
}

std::string to_string(const Counters& counters) {
  std::string text;
  for (const auto& [field, name] : kFields) {
    if (!text.empty()) text += ", ";
    text += std::string(name) + " " + std::to_string(counters.*field);
  }
  return text;
}

}  // namespace plumb::device::decode
