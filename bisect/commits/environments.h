// SPDX-License-Identifier: Apache-2.0
//
// Environments in which kernels are built and run: compilers, flags, libraries, variables. Either
// an ordered list, or a set of toggles, read from TOML (docs/bisect.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bisect/search/culprits.h"
#include "bisect/search/sequence.h"

namespace plumb::bisect {

struct BuildEnvironment {
  std::string name;
  std::string build, artefact;
  bool is_plugin = false;
  std::string flags;
  std::vector<std::string> variables;  // NAME=value
};

struct EnvironmentFile {
  std::string folder;                          // where builds run
  BuildEnvironment common;                     // the entries before the first table
  std::vector<BuildEnvironment> environments;  // in order; empty if there are toggles
  std::vector<BuildEnvironment> toggles;
};
nlohmann::json to_json(const EnvironmentFile& file);

// Throws std::invalid_argument: "env.toml:7: …".
EnvironmentFile parse_environments(const std::string& text, const std::string& path);

// What is built and judged in an environment, with {name} and {flags} replaced.
Subject subject_of(const EnvironmentFile& file, const BuildEnvironment& environment);
// The common environment, plus flags and variables of the toggles that are on.
BuildEnvironment combine(const EnvironmentFile& file, const Switches& on);

class EnvironmentSequence final : public Sequence {
 public:
  explicit EnvironmentSequence(const EnvironmentFile& file) : file_(file) {}
  std::vector<std::string> keys() const;

  std::string bad_end() const override { return file_.environments.back().name; }
  std::vector<std::string> good_ends() const override { return {file_.environments.front().name}; }
  std::vector<std::string> halving_order(const std::string& bad,
                                         const std::vector<std::string>& goods) const override;
  std::vector<std::string> range(const std::string& bad,
                                 const std::vector<std::string>& goods) const override;
  std::string text(const std::string& name) const override { return name; }
  Subject prepare(const std::string& name) override;

 private:
  std::size_t index(const std::string& name) const;
  std::size_t last(const std::vector<std::string>& goods) const;
  const EnvironmentFile& file_;
};

}  // namespace plumb::bisect
