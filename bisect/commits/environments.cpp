// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/environments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace plumb::bisect {

namespace {

using nlohmann::json;

void replace(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

// Replaces characters of a name that a path should not have by _.
std::string plain(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != '+'; }, '_');
  return name;
}

json to_json(const BuildEnvironment& environment) {
  return {{"name", environment.name},     {"build", environment.build},
          {"path", environment.artefact}, {"plugin", environment.is_plugin},
          {"flags", environment.flags},   {"variables", environment.variables}};
}

}  // namespace

json to_json(const EnvironmentFile& file) {
  json all{{"folder", file.folder}, {"common", to_json(file.common)}};
  for (const BuildEnvironment& one : file.environments) all["environments"].push_back(to_json(one));
  for (const BuildEnvironment& one : file.toggles) all["toggles"].push_back(to_json(one));
  return all;
}

Subject subject_of(const EnvironmentFile& file, const BuildEnvironment& environment) {
  Subject subject{file.folder, environment.build, environment.artefact, environment.is_plugin,
                  environment.variables};
  for (std::string* text : {&subject.build, &subject.artefact}) {
    replace(*text, "{name}", plain(environment.name));
    replace(*text, "{flags}", environment.flags);
  }
  return subject;
}

BuildEnvironment combine(const EnvironmentFile& file, const Switches& on) {
  BuildEnvironment all = file.common;
  all.name = on.empty() ? "no toggle" : "";
  for (const std::size_t i : on) {
    const BuildEnvironment& toggle = file.toggles.at(i);
    all.name += (all.name.empty() ? "" : " + ") + toggle.name;
    if (!toggle.flags.empty()) all.flags += (all.flags.empty() ? "" : " ") + toggle.flags;
    all.variables.insert(all.variables.end(), toggle.variables.begin(), toggle.variables.end());
  }
  return all;
}

std::vector<std::string> EnvironmentSequence::keys() const {
  std::vector<std::string> all;
  for (const BuildEnvironment& one : file_.environments) all.push_back(one.name);
  return all;
}

std::size_t EnvironmentSequence::index(const std::string& name) const {
  const auto found = std::find_if(file_.environments.begin(), file_.environments.end(),
                                  [&](const BuildEnvironment& one) { return one.name == name; });
  return static_cast<std::size_t>(found - file_.environments.begin());
}

std::size_t EnvironmentSequence::last(const std::vector<std::string>& goods) const {
  std::size_t latest = 0;
  for (const std::string& good : goods) latest = std::max(latest, index(good));
  return latest;
}

std::vector<std::string> EnvironmentSequence::halving_order(
    const std::string& bad, const std::vector<std::string>& goods) const {
  std::vector<std::string> order;
  for (const std::size_t i : bisect::halving_order(last(goods), index(bad))) {
    order.push_back(file_.environments[i].name);
  }
  return order;
}

std::vector<std::string> EnvironmentSequence::range(const std::string& bad,
                                                    const std::vector<std::string>& goods) const {
  std::vector<std::string> all;
  for (std::size_t i = last(goods) + 1; i <= index(bad); ++i) {
    all.push_back(file_.environments[i].name);
  }
  return all;
}

Subject EnvironmentSequence::prepare(const std::string& name) {
  return subject_of(file_, file_.environments[index(name)]);
}

}  // namespace plumb::bisect
