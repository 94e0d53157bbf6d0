// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/judging.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace plumb::bisect {

using nlohmann::json;

namespace {

// Seconds. If a good verdict takes longer, a hint says how to save runs.
constexpr double kLong = 60;

}  // namespace

Judging::Judging(Question run, double timeout, std::int64_t most_goods, std::int64_t repeat,
                 Journal& journal, Progress& progress)
    : run_(std::move(run)),
      timeout_(timeout),
      journal_(journal),
      progress_(progress),
      repeater_(most_goods, repeat) {}

void Judging::decide(const std::string& text) {
  journal_.note(text);
  progress_.line(text);
}

Judged Judging::answer(const Asked& asked, bool measured) {
  const auto remembered = journal_.find(asked.key, [&](const json& known) {
    Judged judged = judged_from_json(known);
    if (measured) repeater_.restore(judged.result, known.at("signatures"));
    return judged;
  });
  if (remembered) return *remembered;
  const auto repeat = [&](const Repeater::Ask& once) {
    return measured ? repeater_.measure(once) : repeater_.verdict(once, any_failure_);
  };
  Judged judged =
      judge(asked.prepare(), run_, timeout_, measured ? 0 : repeater_.runs(), repeat, progress_);
  json answer = to_json(judged);
  answer["text"] = asked.text;
  if (measured) answer["signatures"] = repeater_.signatures();
  journal_.record(asked.key, std::move(answer), asked.why);
  return judged;
}

Judged Judging::tell(const Asked& asked, bool measured) {
  const bool known = journal_.has(asked.key);
  progress_.begin(asked.text, asked.left);
  Judged judged = answer(asked, measured);
  runs_ += judged.result.runs;
  progress_.end();
  const Answer& said = judged.result.answer;
  progress_.line(fmt::format("{}: {}{}{}{}", asked.text, name_of(said.verdict),
                             said.reason.empty() ? "" : ", ", said.reason,
                             known ? " (remembered)" : ""));
  return judged;
}

Judged Judging::measure(const Asked& asked) {
  Judged judged = tell(asked, true);
  if (judged.result.answer.verdict != Verdict::bad) return judged;
  decide(repeater_.text());
  const double each = judged.result.seconds / static_cast<double>(judged.result.runs);
  const double good = each * static_cast<double>(repeater_.runs());
  if (good > kLong) {
    progress_.line(fmt::format(
        "each good answer takes {:.0f} s of runs (--repeat 1 if the case fails in every run)",
        good));
  }
  return judged;
}

Judged Judging::ask(const Asked& asked) { return tell(asked, false); }

void Judging::narrow(const Answer& failure) {
  if (!failure.failed.is_object()) return;
  const std::string which = failure.failed.at("case"), platform = failure.failed.at("platform");
  if (run_.which == which && run_.platform == platform) return;
  run_.which = which;
  run_.platform = platform;
  decide(fmt::format("the search uses {} on {}, the first case that fails", which, platform));
}

}  // namespace plumb::bisect
