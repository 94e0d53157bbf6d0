// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON report of plumb bench.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/bench/bench.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

std::string text_of(const Target& target) {
  const bool least = std::isfinite(target.least), most = std::isfinite(target.most);
  if (least && most) return fmt::format("{:g} to {:g}", target.least, target.most);
  if (least) return fmt::format("at least {:g}", target.least);
  return most ? fmt::format("at most {:g}", target.most) : "";
}

std::string verdict(const Measurement& m) {
  if (m.target.met(m.value)) return "";
  return m.value < m.target.least ? "below target" : "above target";
}

ordered_json to_json(const Measurement& m) {
  ordered_json json{{"name", m.name}, {"value", m.value}, {"unit", m.unit}, {"spread", m.spread}};
  if (std::isfinite(m.target.least)) json["at_least"] = m.target.least;
  if (std::isfinite(m.target.most)) json["at_most"] = m.target.most;
  json["target_met"] = m.target.met(m.value);
  for (const Part& part : m.parts) {
    json["parts"].push_back({{"name", part.name}, {"value", part.value}, {"unit", part.unit}});
  }
  return json;
}

}  // namespace

std::string bench_text(const Benchmark& benchmark, const std::vector<Measurement>& measured) {
  std::size_t names = 0, units = 0, targets = 6;
  for (const Measurement& m : measured) {
    names = std::max(names, m.name.size());
    units = std::max(units, m.unit.size());
    targets = std::max(targets, text_of(m.target).size());
  }
  std::string text = fmt::format("{}: {}\n", benchmark.name, benchmark.about);
  text += fmt::format("  {:<{}}  {:>8} {:<{}}  {:>6}  {:<{}}\n", "", names, "median", "", units,
                      "spread", "target", targets);
  for (const Measurement& m : measured) {
    text += fmt::format("  {:<{}}  {:>8.3g} {:<{}}  {:>4.0f} %  {:<{}}  {:<12}  {}", m.name, names,
                        m.value, m.unit, units, 100 * m.spread, text_of(m.target), targets,
                        verdict(m), m.note);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string bench_json(const std::vector<std::pair<Benchmark, std::vector<Measurement>>>& measured,
                       double load) {
  ordered_json json{{"load_average", load}, {"compiler", __VERSION__}};
  for (const auto& [benchmark, measurements] : measured) {
    ordered_json list = ordered_json::array();
    for (const Measurement& m : measurements) list.push_back(to_json(m));
    json["benchmarks"][std::string(benchmark.name)] = list;
  }
  return json.dump(1) + "\n";
}

}  // namespace plumb::tools
