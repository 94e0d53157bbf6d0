// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help.h"

#include <fmt/format.h>

#include <sstream>

namespace plumb::tools {

namespace {

constexpr std::size_t kLeft = 28;  // columns of names, the two of the indent included

// Breaks a text between words. Every line begins with `indent` spaces; the first one has them.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::istringstream words(text);
  std::string lines;
  std::size_t at = indent;
  for (std::string word; words >> word; at += word.size()) {
    if (!lines.empty() && at + 1 + word.size() > kHelpColumns) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!lines.empty()) {
      lines += ' ';
      ++at;
    }
    lines += word;
  }
  return lines;
}

std::string entry(const std::string& name, const std::string& meaning) {
  std::string left = fmt::format("  {:<{}}", name, kLeft - 2);
  if (left.size() > kLeft || left.back() != ' ') left += "\n" + std::string(kLeft, ' ');
  return left + wrapped(meaning, kLeft) + "\n";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string name_of_option(const CLI::Option& option) {
  std::string name = option.get_name(false, true);
  if (const auto brace = name.find('{'); brace != std::string::npos) name.resize(brace);
  const auto comma = name.find(',');
  return comma == std::string::npos ? name : name.replace(comma, 1, ", ");
}

std::string meaning_of(const CLI::Option& option) {
  std::string meaning = option.get_description();
  if (!option.get_default_str().empty()) {
    meaning += fmt::format(" (default: {})", option.get_default_str());
  }
  if (option.get_required() && option.nonpositional()) meaning += " (required)";
  return meaning;
}

}  // namespace

HelpText::HelpText() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpText::make_help(const CLI::App* app, std::string name,
                                CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  text = replaced(std::move(text), "\n\n\n", "\n\n");
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string HelpText::make_description(const CLI::App* app) const {
  const std::string text = app->get_description();
  return text.empty() ? "" : wrapped(text, 0) + "\n\n";
}

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = is_positional ? option->get_name(true, false) : name_of_option(*option);
  if (!is_positional && !option->get_option_text().empty()) name += " " + option->get_option_text();
  return entry(name, meaning_of(*option));
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

}  // namespace plumb::tools
