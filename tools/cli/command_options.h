// SPDX-License-Identifier: Apache-2.0
//
// Options that several commands have. Only sources of this folder use CLI11, whose headers take
// seconds to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cli/command_line.h"
#include "tools/selection.h"

namespace plumb::tools {

// An option that may be given several times. `value`: the name of its value in the help.
inline CLI::Option* add_repeatable(CLI::App& command, const char* name, const char* value,
                                   std::vector<std::string>& values, const char* meaning) {
  // One value per occurrence: a following word is not a second value.
  return command.add_option(name, values, meaning)
      ->take_all()
      ->allow_extra_args(false)
      ->option_text(std::string(value) + " (repeatable)");
}

// As add_repeatable, for values without commas: one occurrence takes a list, "a,b".
inline CLI::Option* add_names(CLI::App& command, const char* name, const char* value,
                              std::vector<std::string>& values, const char* meaning) {
  return add_repeatable(command, name, value, values, meaning)
      ->delimiter(',')
      ->option_text(std::string(value) + ",...");
}

// An option with one value. `value`: its name in the help.
template <class Value>
CLI::Option* add_value(CLI::App& command, const char* name, const char* value, Value& target,
                       const char* meaning) {
  return command.add_option(name, target, meaning)->option_text(value);
}

// Options that are added next stand in this group of the help.
inline void begin_group(CLI::App& command, const char* name) {
  command.option_defaults()->group(name);
}

// A check that refuses an empty value.
std::string check_named(const std::string& path);

void add_plugin(CLI::App& command, std::string& plugin);
void add_own_ops(CLI::App& command, std::vector<std::string>& own_ops);
// --case, --op, --platform, --tier, --set, --cases.
void add_case_selection(CLI::App& command, Selection& selection);
void add_jobs(CLI::App& command, int& jobs, const char* meaning);
void add_json(CLI::App& command, std::string& path);

// Each adds commands: to run cases; to read reports and traces; to compare; of goldens; searches.
void add_case_commands(CLI::App& app, Action& action);
void add_report_commands(CLI::App& app, Action& action);
void add_judge(CLI::App& app, Action& action);
void add_study_commands(CLI::App& app, Action& action);
void add_golden(CLI::App& app, Action& action);
void add_bisect(CLI::App& app, Action& action);

}  // namespace plumb::tools
