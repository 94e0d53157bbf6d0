// SPDX-License-Identifier: Apache-2.0
//
// CBOR, which unlike JSON has NaN and infinity.
#include "tools/wire.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plumb::tools {

namespace {

using nlohmann::json;

json pack(const cases::TensorReport& report) {
  json packed{{"tensor", report.tensor},
              {"rows_compared", report.rows_compared},
              {"wrong_rows", report.wrong_rows},
              {"wrong_elements", report.wrong_elements},
              {"margin", report.margin},
              {"pattern", report.pattern},
              {"flips", report.flips}};
  if (report.worst) {
    packed["worst"] = {report.worst->coordinates, report.worst->expected, report.worst->got,
                       report.worst->bound};
  }
  return packed;
}

cases::TensorReport unpack_report(const json& packed) {
  cases::TensorReport report;
  packed.at("tensor").get_to(report.tensor);
  packed.at("rows_compared").get_to(report.rows_compared);
  packed.at("wrong_rows").get_to(report.wrong_rows);
  packed.at("wrong_elements").get_to(report.wrong_elements);
  packed.at("margin").get_to(report.margin);
  packed.at("pattern").get_to(report.pattern);
  packed.at("flips").get_to(report.flips);
  if (packed.contains("worst")) {
    const json& worst = packed.at("worst");
    report.worst.emplace();
    worst.at(0).get_to(report.worst->coordinates);
    worst.at(1).get_to(report.worst->expected);
    worst.at(2).get_to(report.worst->got);
    worst.at(3).get_to(report.worst->bound);
  }
  return report;
}

json pack(const cases::Failure& failure) {
  json packed{{"context", failure.context}, {"lines", failure.lines}, {"reports", json::array()}};
  for (const cases::TensorReport& report : failure.reports) {
    packed["reports"].push_back(pack(report));
  }
  return packed;
}

cases::Failure unpack_failure(const json& packed) {
  cases::Failure failure;
  packed.at("context").get_to(failure.context);
  packed.at("lines").get_to(failure.lines);
  for (const json& report : packed.at("reports")) failure.reports.push_back(unpack_report(report));
  return failure;
}

json pack(const std::vector<cases::Finding>& findings) {
  json packed = json::array();
  for (const cases::Finding& f : findings) {
    packed.push_back({static_cast<int>(f.detector), f.step, f.position, f.op, f.call, f.text});
  }
  return packed;
}

std::vector<cases::Finding> unpack_findings(const json& packed) {
  std::vector<cases::Finding> findings;
  for (const json& f : packed) {
    findings.push_back({static_cast<cases::Detector>(f.at(0).get<int>()), f.at(1), f.at(2), f.at(3),
                        f.at(4), f.at(5)});
  }
  return findings;
}

json pack(const cases::CaseResult& result) {
  const cases::Phases& phases = result.phases;
  json packed{{"id", result.id},
              {"platform", result.platform},
              {"outcome", static_cast<int>(result.outcome)},
              {"reason", result.reason},
              {"diagnosis", result.diagnosis},
              {"points", result.points},
              {"launches", result.launches},
              {"comparisons", result.comparisons},
              {"phases", {phases.fill, phases.reference, phases.device, phases.judge}},
              {"failures", json::array()},
              {"findings", pack(result.findings)},
              {"tensors", json::array()}};
  for (const cases::Failure& failure : result.failures) {
    packed["failures"].push_back(pack(failure));
  }
  for (const cases::TensorSummary& tensor : result.tensors) {
    packed["tensors"].push_back({tensor.tensor, tensor.elements_compared, tensor.margin,
                                 tensor.observability, tensor.zero_share, tensor.flips, tensor.flip,
                                 tensor.sample.rows, tensor.sample.judged, tensor.sample.repeated});
  }
  return packed;
}

cases::CaseResult unpack_result(const json& packed) {
  cases::CaseResult result;
  packed.at("id").get_to(result.id);
  packed.at("platform").get_to(result.platform);
  result.outcome = static_cast<cases::Outcome>(packed.at("outcome").get<int>());
  packed.at("reason").get_to(result.reason);
  packed.at("diagnosis").get_to(result.diagnosis);
  packed.at("points").get_to(result.points);
  packed.at("launches").get_to(result.launches);
  packed.at("comparisons").get_to(result.comparisons);
  const json& phases = packed.at("phases");
  result.phases = {phases.at(0), phases.at(1), phases.at(2), phases.at(3)};
  for (const json& failure : packed.at("failures")) {
    result.failures.push_back(unpack_failure(failure));
  }
  result.findings = unpack_findings(packed.at("findings"));
  for (const json& tensor : packed.at("tensors")) {
    result.tensors.push_back({tensor.at(0),
                              tensor.at(1),
                              tensor.at(2),
                              tensor.at(3),
                              tensor.at(4),
                              tensor.at(5),
                              tensor.at(6),
                              {tensor.at(7), tensor.at(8), tensor.at(9)}});
  }
  return result;
}

json pack(const golden::Comparison& comparison) {
  json packed{{"agreement", static_cast<int>(comparison.agreement)},
              {"toolchain", comparison.toolchain},
              {"lines", comparison.lines},
              {"drifts", json::array()}};
  for (const golden::TensorDrift& d : comparison.drifts) {
    packed["drifts"].push_back({d.tensor, d.rows, d.rows_moved, d.elements, d.elements_moved, d.ulp,
                                d.of_bound, d.where, d.histogram, d.other});
  }
  return packed;
}

golden::Comparison unpack_comparison(const json& packed) {
  golden::Comparison comparison;
  comparison.agreement = static_cast<golden::Agreement>(packed.at("agreement").get<int>());
  packed.at("toolchain").get_to(comparison.toolchain);
  packed.at("lines").get_to(comparison.lines);
  for (const json& d : packed.at("drifts")) {
    comparison.drifts.push_back(
        {d.at(0), d.at(1), d.at(2), d.at(3), d.at(4), d.at(5), d.at(6), d.at(7), d.at(8), d.at(9)});
  }
  return comparison;
}

json pack(const cases::Explanation& one) {
  return {one.name,           one.stands_for,     one.match.wrong, one.match.explained,
          one.match.invented, one.match.by_chance};
}

cases::Explanation unpack_explanation(const json& packed) {
  return {packed.at(0), packed.at(1), {packed.at(2), packed.at(3), packed.at(4), packed.at(5)}};
}

json pack(const cases::Diagnosis& diagnosis) {
  json packed{{"named", json::array()},
              {"known", diagnosis.known},
              {"left out", diagnosis.left_out},
              {"not tried", diagnosis.not_tried}};
  for (const cases::Explanation& one : diagnosis.named) packed["named"].push_back(pack(one));
  if (diagnosis.next) packed["next"] = pack(*diagnosis.next);
  return packed;
}

cases::Diagnosis unpack_diagnosis(const json& packed) {
  cases::Diagnosis diagnosis;
  for (const json& one : packed.at("named")) diagnosis.named.push_back(unpack_explanation(one));
  if (packed.contains("next")) diagnosis.next = unpack_explanation(packed.at("next"));
  packed.at("known").get_to(diagnosis.known);
  packed.at("left out").get_to(diagnosis.left_out);
  packed.at("not tried").get_to(diagnosis.not_tried);
  return diagnosis;
}

[[noreturn]] void refuse(const json::exception& error) {
  throw std::runtime_error(std::string("a worker answered nonsense: ") + error.what());
}

}  // namespace

std::vector<std::uint8_t> to_bytes(const Finished& finished) {
  return json::to_cbor({{"result", pack(finished.result)},
                        {"golden", pack(finished.golden)},
                        {"op", finished.op},
                        {"row", finished.row},
                        {"scenario", finished.scenario},
                        {"reproduce", finished.reproduce},
                        {"seconds", finished.seconds}});
}

std::vector<std::uint8_t> to_bytes(const cases::BadRow& error) {
  return json::to_cbor({{"bad row", error.what()}});
}

Finished finished_from(const std::vector<std::uint8_t>& bytes) {
  try {
    const json packed = json::from_cbor(bytes);
    if (packed.contains("bad row")) throw cases::BadRow(packed.at("bad row"));
    Finished finished;
    finished.result = unpack_result(packed.at("result"));
    finished.golden = unpack_comparison(packed.at("golden"));
    packed.at("op").get_to(finished.op);
    packed.at("row").get_to(finished.row);
    packed.at("scenario").get_to(finished.scenario);
    packed.at("reproduce").get_to(finished.reproduce);
    packed.at("seconds").get_to(finished.seconds);
    return finished;
  } catch (const json::exception& error) {
    refuse(error);
  }
}

std::vector<std::uint8_t> to_bytes(const cases::DiagnosedWatch& watch) {
  const cases::WatchResult& result = watch.result;
  return json::to_cbor({{"findings", pack(result.findings)},
                        {"steps", result.steps},
                        {"calls judged", result.calls_judged},
                        {"choices", result.choices},
                        {"flips", result.flips},
                        {"diagnosis", pack(watch.diagnosis)}});
}

cases::DiagnosedWatch watch_from(const std::vector<std::uint8_t>& bytes) {
  try {
    const json packed = json::from_cbor(bytes);
    cases::DiagnosedWatch watch;
    cases::WatchResult& result = watch.result;
    result.findings = unpack_findings(packed.at("findings"));
    packed.at("steps").get_to(result.steps);
    packed.at("calls judged").get_to(result.calls_judged);
    packed.at("choices").get_to(result.choices);
    packed.at("flips").get_to(result.flips);
    watch.diagnosis = unpack_diagnosis(packed.at("diagnosis"));
    return watch;
  } catch (const json::exception& error) {
    refuse(error);
  }
}

}  // namespace plumb::tools
