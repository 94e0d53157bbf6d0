// SPDX-License-Identifier: Apache-2.0
//
// The text of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace plumb::tools {

inline constexpr std::size_t kHelpColumns = 80;

// Lines of at most kHelpColumns. An option shows the name of its value (option_text) and its
// default. Options and commands stand in their groups, in the order in which they were added.
class HelpText : public CLI::Formatter {
 public:
  HelpText();

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace plumb::tools
