// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cases/tensors/sort_by.h"
#include "decode/schedule/kept_schedule.h"
#include "faults/decode/planted_case.h"

namespace plumb::bisect {

namespace {

using Words = std::vector<std::string>;

// Values of words, and of numbers for which -1 or 0 means "not set", plainest first. A context must
// have room for a state of 128 tokens.
const std::map<std::string, Words>& orders() {
  static const std::map<std::string, Words> orders{
      {"traffic",
       {"steady", "grow", "shrink", "there_and_back", "permute", "replace", "idle", "between",
        "uneven", "same_ends", "prompts", "burst", "join", "prefix", "random"}},
      {"lengths",
       {"equal", "short_ones", "around_page", "around_k", "around_tile", "across", "beyond_k",
        "mixed", "random"}},
      {"accepted", {"", "all", "some", "none"}},
      {"between", {"", "nothing", "dummies", "captures"}},
      {"order", {"", "forward", "reverse", "random"}},
      {"policy", {"", "early", "late", "interleaved"}},
      {"context", {"128", "192", "256", "0"}},
      {"drafter", {"0", "1"}},
      {"prompt_tokens", {"0", "-1", "8", "16"}}};
  return orders;
}

// Value of a word that a row leaves out, for words whose default is not the plainest value.
const std::map<std::string, std::string>& unset() {
  static const std::map<std::string, std::string> unset{{"traffic", "random"},
                                                        {"lengths", "random"}};
  return unset;
}

const Words& first_ones() {
  static const Words names{"requests", "steps",         "speculated", "drafter",
                           "between",  "accepted",      "traffic",    "lengths",
                           "context",  "prompt_tokens", "scenario",   "in_flight"};
  return names;
}

// True for parameters that are not reduced by value: what is served (model, planted fault), and the
// keep lists, which are reduced separately.
bool has_no_order(const Knob& knob) {
  static const std::set<std::string> names{"model", "fault", "keep_requests", "keep_steps"};
  return names.contains(knob.name);
}

std::size_t place_of(const Knob& knob) {
  const Words& names = first_ones();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), knob.name) - names.begin());
}

void order_words(Knob& knob, const std::string& value) {
  const auto known = orders().find(knob.name);
  if (known == orders().end()) return;
  knob.words = known->second;
  if (std::find(knob.words.begin(), knob.words.end(), value) == knob.words.end()) {
    knob.words.push_back(value);
  }
}

// Seeds have no order; the usual seed, 1, counts as the plainest.
void order_seed(Knob& knob, const std::string& value) {
  knob.words = {"1"};
  if (value != "1") knob.words.push_back(value);
}

}  // namespace

void order_serving(Candidate& start, Shrinkable& subject) {
  std::erase_if(subject.knobs, has_no_order);
  for (Knob& knob : subject.knobs) {
    std::string& value = start.at(knob.name);
    const auto meaning = unset().find(knob.name);
    if (value.empty() && meaning != unset().end()) value = meaning->second;
    order_words(knob, value);
    if (knob.name == "seed" || knob.name == "weights") order_seed(knob, value);
    if (knob.name == "speculated") knob.least = 0;  // -1 is not a number of tokens
  }
  cases::sort_by(subject.knobs, place_of);
  subject.sizes = {"requests", "steps"};
  subject.seed = "seed";
}

std::vector<cases::ScheduledStep> schedule_of(const cases::StepCase& which,
                                              const std::string& platform) {
  const cases::ServedCase served = cases::planted_case(which, platform, 0);
  return cases::make_schedule(served.shape, served.setup.geometry);
}

std::vector<std::int64_t> step_numbers(const std::vector<cases::ScheduledStep>& schedule) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    numbers.push_back(static_cast<std::int64_t>(i));
  }
  return numbers;
}

std::vector<std::int64_t> request_numbers(const std::vector<cases::ScheduledStep>& schedule) {
  std::set<std::int64_t> ids;
  for (const cases::ScheduledStep& step : schedule) {
    for (const auto& one : step.batch) ids.insert(static_cast<std::int64_t>(one.request));
  }
  return {ids.begin(), ids.end()};
}

bool serve_the_same(const cases::StepCase& one, const cases::StepCase& other,
                    const std::string& platform) {
  const auto parts = [](const cases::ServedCase& served) {
    const cases::DecodeSetup& setup = served.setup;
    const auto& conditions = setup.conditions;
    const auto& environment = setup.environment;
    return std::tuple(setup.mode, setup.geometry, setup.in_flight, setup.sample, conditions.order,
                      conditions.seed, conditions.policy, environment.seed, environment.churns,
                      environment.fresh_every);
  };
  const cases::ServedCase a = cases::planted_case(one, platform, 0);
  const cases::ServedCase b = cases::planted_case(other, platform, 0);
  return one.row.word("fault") == other.row.word("fault") && a.shape == b.shape &&
         parts(a) == parts(b);
}

std::string ServingSize::text() const {
  return fmt::format("{} request{} in {} step{}", requests, requests == 1 ? "" : "s", steps,
                     steps == 1 ? "" : "s");
}

ServingSize serving_size(const cases::StepCase& which, const std::string& platform) {
  const auto schedule = schedule_of(which, platform);
  return {cases::requests_of(schedule), std::ssize(schedule)};
}

}  // namespace plumb::bisect
