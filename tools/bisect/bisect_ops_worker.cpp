// SPDX-License-Identifier: Apache-2.0
#include "tools/bisect/bisect_ops_worker.h"

#include <utility>

#include "bisect/ops/step_ops.h"
#include "tools/wire.h"

namespace plumb::tools {

namespace {

using cases::Difference;
using nlohmann::json;

enum class Kind : std::uint64_t { watch, results, twice };

// What a task is: below, a bit for each op, in the order of exchangeable_ops(), or the number of a
// second run.
constexpr int kPlatformBit = 52, kKindBit = 60;
constexpr std::uint64_t kWhat = (std::uint64_t{1} << kPlatformBit) - 1;

std::uint64_t task_of(Kind kind, std::size_t platform, std::uint64_t what) {
  return static_cast<std::uint64_t>(kind) << kKindBit |
         static_cast<std::uint64_t>(platform) << kPlatformBit | what;
}

std::uint64_t bits_of(const bisect::Ops& exchanged) {
  std::uint64_t bits = 0, bit = 1;
  for (const std::string& op : bisect::exchangeable_ops()) {
    if (exchanged.contains(op)) bits |= bit;
    bit <<= 1;
  }
  return bits;
}

bisect::Ops ops_of(std::uint64_t bits) {
  bisect::Ops ops;
  for (const std::string& op : bisect::exchangeable_ops()) {
    if ((bits & 1) != 0) ops.insert(op);
    bits >>= 1;
  }
  return ops;
}

json to_json(const Difference& d) {
  return {static_cast<int>(d.from),
          d.step,
          d.part,
          d.call,
          d.op,
          d.tensor,
          d.rows,
          d.rows_total,
          d.input,
          d.digests};
}

Difference difference_from(const json& j) {
  Difference d;
  d.from = static_cast<Difference::From>(j.at(0).get<int>());
  d.step = j.at(1);
  d.part = j.at(2);
  d.call = j.at(3);
  d.op = j.at(4);
  d.tensor = j.at(5);
  d.rows = j.at(6).get<std::vector<std::int64_t>>();
  d.rows_total = j.at(7);
  d.input = j.at(8);
  d.digests = j.at(9);
  return d;
}

Bytes answer_twice(const cases::ServedCase& served, const cases::ServedCase& again,
                   std::size_t second) {
  TwiceAnswer answer;
  try {
    const auto runs = cases::second_runs(again.setup);
    answer.difference = cases::first_difference(served.setup, runs.at(second), served.shape);
  } catch (const std::exception& error) {
    answer.failed = error.what();
  }
  return json::to_cbor(to_json(answer));
}

}  // namespace

json to_json(const TwiceAnswer& answer) {
  json told{{"difference", nullptr}, {"failed", answer.failed}, {"verdict", "no difference"}};
  if (!answer.failed.empty()) told["verdict"] = answer.failed;
  if (!answer.difference) return told;
  told["difference"] = to_json(*answer.difference);
  told["verdict"] = text_of(*answer.difference);
  return told;
}

TwiceAnswer twice_from_json(const json& told) {
  TwiceAnswer answer{{}, told.at("failed")};
  if (!told.at("difference").is_null()) answer.difference = difference_from(told.at("difference"));
  return answer;
}

OpsWorker::OpsWorker(std::vector<std::string> command, double timeout)
    : worker_(std::move(command), timeout) {}

bisect::OpsAnswer OpsWorker::watch(std::size_t platform, const bisect::Ops& exchanged) {
  const auto answer = worker_.run(task_of(Kind::watch, platform, bits_of(exchanged)));
  if (const auto* death = std::get_if<Death>(&answer)) return {{}, death->why};
  return {watch_from(std::get<Bytes>(answer)).result.findings, ""};
}

std::vector<float> OpsWorker::results(std::size_t platform, const bisect::Ops& exchanged) {
  const auto answer = worker_.run(task_of(Kind::results, platform, bits_of(exchanged)));
  if (std::get_if<Death>(&answer) != nullptr) return {};
  return json::from_cbor(std::get<Bytes>(answer)).get<std::vector<float>>();
}

TwiceAnswer OpsWorker::twice(std::size_t platform, std::size_t second) {
  const auto answer = worker_.run(task_of(Kind::twice, platform, second));
  if (const auto* death = std::get_if<Death>(&answer)) return {{}, death->why};
  return twice_from_json(json::from_cbor(std::get<Bytes>(answer)));
}

Bytes answer_ops(const ServeCase& serve, std::uint64_t task) {
  const auto kind = static_cast<Kind>(task >> kKindBit);
  const std::uint64_t platforms = std::uint64_t{1} << (kKindBit - kPlatformBit);
  const cases::ServedCase one = serve((task >> kPlatformBit) % platforms);
  const std::uint64_t what = task & kWhat;
  if (kind == Kind::twice)
    return answer_twice(one, serve((task >> kPlatformBit) % platforms), what);
  if (kind == Kind::results) {
    return json::to_cbor(bisect::results_of(one.setup, one.shape, ops_of(what)));
  }
  const bisect::OpsAnswer watched = bisect::watch_exchanged(one.setup, one.shape, ops_of(what));
  cases::DiagnosedWatch answer;
  answer.result.findings = watched.findings;
  return to_bytes(answer);
}

}  // namespace plumb::tools
