// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/against_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cases/judge/judge.h"
#include "tools/judge/judge_report.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kListedPairs = 1000;

std::string rows_text(const DifferentPair& pair, std::int64_t cases::RowPair::* side) {
  std::vector<std::int64_t> rows;
  for (const cases::RowPair& one : pair.rows) rows.push_back(one.*side);
  std::ranges::sort(rows);
  return fmt::format("{} {}", rows.size() == 1 ? "row" : "rows", cases::row_ranges(rows));
}

std::string tensor_text(const cases::TensorDifference& tensor) {
  return fmt::format("{}: {} of {} elements differ, in {} of {} rows; the first at {}",
                     tensor.tensor, tensor.elements_differ, tensor.elements, tensor.rows_differ,
                     tensor.rows, tensor.first);
}

// The largest difference, in units of the largest difference that two right results may have.
std::string distance_text(const DifferentPair& pair) {
  const trace::PairReport& report = pair.report;
  if (!pair.judged()) return fmt::format("not judged: {}", report.not_judged);
  if (!report.a_wrong.empty() || !report.b_wrong.empty()) {
    std::string text;
    if (!report.a_wrong.empty()) text += "A is wrong: " + report.a_wrong;
    if (!text.empty() && !report.b_wrong.empty()) text += "\n      ";
    if (!report.b_wrong.empty()) text += "B is wrong: " + report.b_wrong;
    return text;
  }
  const cases::TensorDifference* largest = nullptr;
  for (const cases::TensorDifference& tensor : report.tensors) {
    if (largest == nullptr || tensor.of_bound > largest->of_bound) largest = &tensor;
  }
  if (largest == nullptr)
    return "the difference is allowed: the op does not define these elements or their order";
  if (largest->of_bound < 0) return "both are right: the op allows either choice";
  return fmt::format(
      "{} the largest difference of two right results: {:.3g} × this difference, {} {}",
      pair.beyond() ? "beyond" : "within", largest->of_bound, largest->tensor, largest->largest);
}

std::string pair_text(const DifferentPair& pair) {
  std::string text = place_of(pair.a) + "\n";
  const bool elsewhere = call_id(pair.a) != call_id(pair.b);
  if (!pair.whole) {
    text += fmt::format("      {}, in B {} of call {}\n", rows_text(pair, &cases::RowPair::a),
                        rows_text(pair, &cases::RowPair::b), call_id(pair.b));
  } else if (elsewhere) {
    text += fmt::format("      in B: call {}\n", call_id(pair.b));
  }
  for (const cases::TensorDifference& tensor : pair.report.tensors) {
    text += fmt::format("      {}\n", tensor_text(tensor));
  }
  return text + fmt::format("      {}\n", distance_text(pair));
}

std::string outcome_of(const DifferentPair& pair) {
  return pair.beyond() ? "beyond" : pair.judged() ? "within" : "not judged";
}

ordered_json json_of_tensor(const cases::TensorDifference& tensor) {
  ordered_json json{{"tensor", tensor.tensor},
                    {"elements", tensor.elements},
                    {"elements_differ", tensor.elements_differ},
                    {"rows", tensor.rows},
                    {"rows_differ", tensor.rows_differ},
                    {"first", tensor.first}};
  // JSON has no infinity, so the member is left out.
  if (tensor.of_bound >= 0 && std::isfinite(tensor.of_bound)) json["of_bound"] = tensor.of_bound;
  if (!tensor.largest.empty()) json["largest"] = tensor.largest;
  return json;
}

ordered_json json_of_pair(const DifferentPair& pair) {
  ordered_json json{{"a", call_id(pair.a)},   {"b", call_id(pair.b)},
                    {"op", pair.a.op},        {"name", pair.a.name},
                    {"layer", pair.a.layer},  {"outcome", outcome_of(pair)},
                    {"rows", ordered_json()}, {"tensors", ordered_json::array()}};
  if (!pair.whole) {
    json["rows"] = ordered_json::array();
    for (const cases::RowPair& row : pair.rows) json["rows"].push_back({row.a, row.b});
  }
  for (const auto& tensor : pair.report.tensors) json["tensors"].push_back(json_of_tensor(tensor));
  if (!pair.judged()) json["not_judged"] = pair.report.not_judged;
  if (!pair.report.a_wrong.empty()) json["a_wrong"] = pair.report.a_wrong;
  if (!pair.report.b_wrong.empty()) json["b_wrong"] = pair.report.b_wrong;
  return json;
}

ordered_json json_of_count(const MatchCount& count) {
  return {{"calls", count.calls},     {"rows", count.rows},     {"same", count.same},
          {"within", count.within},   {"beyond", count.beyond}, {"not_judged", count.not_judged},
          {"carried", count.carried}, {"only_a", count.only_a}, {"only_b", count.only_b}};
}

const trace::CallOutline& outline_at(const trace::TraceOutline& trace, const trace::CallRef& ref) {
  return trace[ref.file].calls[ref.call];
}

std::map<std::string, std::string> provenance_of(const trace::TraceOutline& trace) {
  return trace.empty() ? std::map<std::string, std::string>() : trace.front().provenance;
}

}  // namespace

void AgainstReport::count(const trace::Matching& matching) {
  const auto add = [&](const trace::TraceOutline& trace, const trace::CallRef& ref,
                       std::int64_t MatchCount::* what, std::int64_t number) {
    ops_[outline_at(trace, ref).place.kind()].*what += number;
    total_.*what += number;
  };
  for (const trace::MatchedCalls& one : matching.matched) {
    add(a_, one.a, one.whole ? &MatchCount::calls : &MatchCount::rows, one.whole ? 1 : one.rows);
    const std::int64_t same = one.whole ? one.same : one.rows - std::ssize(one.differ);
    add(a_, one.a, &MatchCount::same, same);
  }
  for (const trace::CarriedCall& one : matching.carried) add(a_, one.a, &MatchCount::carried, 1);
  for (const trace::CallRef& one : matching.only_a) add(a_, one, &MatchCount::only_a, 1);
  for (const trace::CallRef& one : matching.only_b) add(b_, one, &MatchCount::only_b, 1);
  if (!matching.carried.empty()) first_carried_ = matching.carried.front();
}

void AgainstReport::add(DifferentPair pair) {
  const std::int64_t units = pair.whole ? 1 : std::ssize(pair.rows);
  const std::int64_t beyond = pair.report.beyond;
  for (MatchCount* const count : {&total_, &ops_[pair.a.kind()]}) {
    count->beyond += beyond;
    (pair.judged() ? count->within : count->not_judged) += units - beyond;
  }
  if (pair.beyond() && !first_beyond_) first_beyond_ = different_.size();
  different_.push_back(std::move(pair));
}

int AgainstReport::exit_code() const {
  if (total_.beyond > 0) return 1;
  return matched() == 0 || total_.not_judged > 0 ? 2 : 0;
}

std::string AgainstReport::table_text(const Style& style) const {
  constexpr const char* kLine = "{:<36}{:>8}{:>8}{:>8}{:>8}{:>8}{:>12}{:>9}{:>8}{:>8}\n";
  std::string text =
      style.paint(fmt::format(fmt::runtime(kLine), "op", "calls", "rows", "same", "within",
                              "beyond", "not judged", "carried", "only A", "only B"),
                  "1");
  for (const auto& [op, count] : ops_) {
    text += fmt::format(fmt::runtime(kLine), op, count.calls, count.rows, count.same, count.within,
                        count.beyond, count.not_judged, count.carried, count.only_a, count.only_b);
  }
  return text;
}

// Names the first call that read other bits in the two traces, and the tensors concerned. If no
// earlier matched call wrote other bits, an unrecorded kernel did, or the requests differ.
std::string AgainstReport::carried_text() const {
  if (!first_carried_) return "";
  const trace::CallOutline& a = outline_at(a_, first_carried_->a);
  const trace::CallOutline& b = outline_at(b_, first_carried_->b);
  std::vector<std::string> names;
  for (const auto& [name, digest] : a.read) {
    const auto other = b.read.find(name);
    if (other == b.read.end() || other->second != digest) names.push_back(name);
  }
  return fmt::format(
      "carried: {} calls read other bits than the call at the same place in B. The "
      "first is {}: {}\n",
      total_.carried, place_of(a.place),
      names.empty() ? "other integers or reals" : fmt::format("{}", fmt::join(names, ", ")));
}

std::string AgainstReport::text(const Style& style) const {
  std::string text;
  if (!different_.empty()) {
    text += style.paint("FIRST DIFFERENT BITS", "33;1") + "  " + pair_text(different_.front());
  }
  if (first_beyond_ && *first_beyond_ != 0) {
    text += style.paint("FIRST DIFFERENCE THAT TWO RIGHT RESULTS CANNOT HAVE", "31;1") + "  " +
            pair_text(different_[*first_beyond_]);
  }
  if (!text.empty()) text += "\n";
  text += table_text(style) + carried_text();
  return text + fmt::format(
                    "{} calls and {} rows matched: {} the same, {} within, {} beyond, {} not "
                    "judged\n",
                    total_.calls, total_.rows, total_.same, total_.within, total_.beyond,
                    total_.not_judged);
}

std::string AgainstReport::json(const std::string& path_a, const std::string& path_b) const {
  ordered_json json{{"schema", 1},
                    {"a", path_a},
                    {"b", path_b},
                    {"exit_code", exit_code()},
                    {"provenance", {{"a", provenance_of(a_)}, {"b", provenance_of(b_)}}},
                    {"total", json_of_count(total_)},
                    {"ops", ordered_json::object()},
                    {"first_different", ordered_json()},
                    {"first_beyond", ordered_json()},
                    {"different", ordered_json::array()}};
  for (const auto& [op, count] : ops_) json["ops"][op] = json_of_count(count);
  if (!different_.empty()) json["first_different"] = json_of_pair(different_.front());
  if (first_beyond_) json["first_beyond"] = json_of_pair(different_[*first_beyond_]);
  for (std::size_t i = 0; i < different_.size() && i < kListedPairs; ++i) {
    json["different"].push_back(json_of_pair(different_[i]));
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace plumb::tools
