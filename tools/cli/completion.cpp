// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/completion.h"

#include <fmt/format.h>

#include <vector>

#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::tools {

namespace {

// The words after a path of commands: options of a command, subcommands of a group.
std::string words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* one : command.get_subcommands(nullptr)) words.push_back(one->get_name());
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

void add_branches(const CLI::App& command, const std::string& path, std::string& branches) {
  branches += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, words_after(command));
  for (const CLI::App* one : command.get_subcommands(nullptr)) {
    add_branches(*one, path.empty() ? one->get_name() : path + " " + one->get_name(), branches);
  }
}

std::string names_of_ops() {
  std::vector<std::string> names;
  for (const cases::OpDefinition& op : cases::all_ops()) names.emplace_back(op.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// PATH is the path of commands typed so far, as "bisect case".
constexpr const char* kScript = R"sh(_plumb() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local path="" words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
{paths}      *) break ;;
    esac
  done
  case "$path" in
{branches}  esac
  case "$previous" in
    --platform) words="{platforms}" ;;
    --op) words="{ops}" ;;
    --tier) words="smoke default full" ;;
    --color) words="auto always never" ;;
    --geometry) words="small production" ;;
    --case) words="$(_plumb_cases "$current")" ;;
    completion) words="bash zsh" ;;
    *)
      case "$path $current" in
        *" -"*) ;;
        "run "* | "show "* | "bisect case "* | "bisect ops "*) words="$(_plumb_cases "$current")" ;;
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  # After the name of an op a slash or a space may follow.
  case "$words" in "{ops} "*) compopt -o nospace 2>/dev/null ;; esac
  if [ "${{#COMPREPLY[@]}}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}}
# Ops first: the names of all cases would be ten thousand words.
_plumb_cases() {{
  case "$1" in
    */*) plumb list --case "$1*" 2>/dev/null ;;
    *) echo "{ops} decode_step" ;;
  esac
}}
complete -F _plumb plumb
)sh";

void add_paths(const CLI::App& group, const std::string& path, std::string& paths) {
  for (const CLI::App* one : group.get_subcommands(nullptr)) {
    paths += fmt::format("      \"{} {}\") path=\"{}{}{}\" ;;\n", path, one->get_name(), path,
                         path.empty() ? "" : " ", one->get_name());
    add_paths(*one, path.empty() ? one->get_name() : path + " " + one->get_name(), paths);
  }
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::string branches, paths;
  add_branches(app, "", branches);
  add_paths(app, "", paths);
  const std::string script =
      fmt::format(kScript, fmt::arg("paths", paths), fmt::arg("branches", branches),
                  fmt::arg("platforms", fmt::join(device::known_platforms(), " ")),
                  fmt::arg("ops", names_of_ops()));
  return shell == "zsh" ? "autoload -U +X compinit && compinit -u\n"
                          "autoload -U +X bashcompinit && bashcompinit\n" +
                              script
                        : script;
}

}  // namespace plumb::tools
