// SPDX-License-Identifier: Apache-2.0
//
// Reads environments and toggles. An unknown or impossible entry is an error with its line number.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "bisect/commits/build.h"
#include "bisect/commits/environments.h"
#include "cases/tables/case_file.h"
#include "cases/tensors/toml.h"

namespace plumb::bisect {

namespace {

class EnvironmentReader {
 public:
  explicit EnvironmentReader(const std::string& path) : path_(path) {}

  EnvironmentFile read(const toml::table& document) {
    EnvironmentFile file;
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    file.folder = std::filesystem::absolute(folder.empty() ? "." : folder).string();
    for (const auto& [key, node] : document) {
      if (key == "environment" || key == "toggle") continue;
      set(file.common, key, node, {"environment", "toggle"});
    }
    if (document.contains("environment") == document.contains("toggle")) {
      fail(document, "needs either [[environment]] tables or [[toggle]] tables");
    }
    if (const toml::node* list = document.get("environment")) {
      file.environments = tables(*list, file.common);
      if (file.environments.size() < 2) fail(*list, "needs at least two [[environment]] tables");
    }
    if (const toml::node* list = document.get("toggle")) file.toggles = toggles(*list);
    check(document, file);
    return file;
  }

  [[noreturn]] void fail(const toml::source_region& region, const std::string& why) const {
    throw std::invalid_argument(fmt::format("{}:{}: {}", path_, region.begin.line, why));
  }

 private:
  [[noreturn]] void fail(const toml::node& node, const std::string& why) const {
    fail(node.source(), why);
  }

  std::string text(const toml::node& node, std::string_view key) const {
    if (!node.is_string()) fail(node, fmt::format("{} must be a string", key));
    return *node.value<std::string>();
  }

  void set(BuildEnvironment& environment, const toml::key& key, const toml::node& node,
           std::vector<std::string> others = {}) const {
    if (key == "build") {
      environment.build = text(node, "build");
    } else if (key == "flags") {
      environment.flags = text(node, "flags");
    } else if (key == "plugin" || key == "plumb") {
      environment.artefact = text(node, key.str());
      environment.is_plugin = key == "plugin";
    } else if (key == "variables") {
      set_variables(environment, node);
    } else {
      others.insert(others.end(), {"build", "flags", "plugin", "plumb", "variables"});
      const std::string nearest = cases::nearest_name(key.str(), others);
      fail(node, fmt::format("unknown \"{}\"{}", key.str(),
                             nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
    }
  }

  void set_variables(BuildEnvironment& environment, const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node, "variables is a table: { NAME = \"value\" }");
    for (const auto& [name, value] : *table) {
      const std::string word(name.str());
      if (word.empty() || word.find('=') != std::string::npos) {
        fail(value, fmt::format("\"{}\" is not the name of a variable", word));
      }
      environment.variables.push_back(word + "=" + text(value, word));
    }
  }

  // Reads a list of environments. Each starts as a copy of the common one.
  std::vector<BuildEnvironment> tables(const toml::node& list, const BuildEnvironment& common) {
    const toml::array* array = list.as_array();
    if (array == nullptr) fail(list, "write it with two brackets, as [[environment]]");
    std::vector<BuildEnvironment> all;
    std::set<std::string> names;
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr) fail(element, "is not a table");
      BuildEnvironment one = common;
      for (const auto& [key, node] : *table) {
        if (key == "name") {
          one.name = text(node, "name");
        } else {
          set(one, key, node, {"name"});
        }
      }
      if (one.name.empty()) fail(element, "has no name");
      if (!names.insert(one.name).second) fail(element, one.name + " is there twice");
      all.push_back(std::move(one));
    }
    return all;
  }

  std::vector<BuildEnvironment> toggles(const toml::node& list) {
    std::vector<BuildEnvironment> all = tables(list, {});
    for (const BuildEnvironment& toggle : all) {
      if (!toggle.build.empty() || !toggle.artefact.empty()) {
        fail(list, toggle.name + ": a toggle has flags and variables only");
      }
      if (toggle.name.find(" + ") != std::string::npos) {
        fail(list, toggle.name + ": \" + \" joins the names of toggles");
      }
      if (toggle.flags.empty() && toggle.variables.empty()) {
        fail(list, toggle.name + ": switches nothing: no flags, no variables");
      }
    }
    return all;
  }

  // Checks that artefacts (the files that builds make) lie inside the folder, because a build
  // removes its artefact first.
  void check(const toml::table& document, const EnvironmentFile& file) const {
    std::vector<BuildEnvironment> all = file.environments;
    if (!file.toggles.empty()) all.push_back(file.common);
    for (const BuildEnvironment& one : all) {
      if (one.build.empty()) continue;
      try {
        require_inside(one.artefact);
      } catch (const std::invalid_argument& error) {
        fail(document, fmt::format("{}: plugin or plumb: {}",
                                   one.name.empty() ? "what is built" : one.name, error.what()));
      }
    }
    const bool uses_flags = std::any_of(file.toggles.begin(), file.toggles.end(),
                                        [](const BuildEnvironment& t) { return !t.flags.empty(); });
    if (uses_flags && file.common.build.find("{flags}") == std::string::npos) {
      fail(document, "toggles have flags, but build has no {flags}");
    }
  }

  const std::string& path_;
};

}  // namespace

EnvironmentFile parse_environments(const std::string& text, const std::string& path) {
  EnvironmentReader reader(path);
  toml::table document;
  try {
    document = toml::parse(text);
  } catch (const toml::parse_error& error) {
    reader.fail(error.source(), std::string(error.description()));
  } catch (const cases::MalformedToml& error) {
    reader.fail(toml::source_region(), error.what());
  }
  return reader.read(document);
}

}  // namespace plumb::bisect
