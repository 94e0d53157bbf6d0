// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <system_error>

namespace plumb::bisect {

namespace {

// Runs git without the user's hooks, which might build, ask or refuse.
Ended git(const std::string& folder, const std::vector<std::string>& arguments,
          bool always = false) {
  ProcessCommand command{{"git", "-C", folder, "-c", "core.hooksPath=/dev/null", "-c",
                          "advice.detachedHead=false", "-c", "gc.auto=0"},
                         "",
                         {"LC_ALL=C", "GIT_TERMINAL_PROMPT=0"},
                         0,
                         always};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  try {
    return run_process(command);
  } catch (const std::system_error& error) {
    throw BadRepository(error.what());
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string ask(const std::string& folder, const std::vector<std::string>& arguments) {
  Ended ended = git(folder, arguments);
  if (ended.ok()) return std::move(ended.out);
  throw BadRepository(fmt::format("git {} in {}: {}", arguments.front(), folder,
                                  ended.err.empty() ? ended.how() : first_line(ended.err)));
}

// Arguments that exclude everything reachable from `goods`.
std::vector<std::string> without(const std::vector<std::string>& goods) {
  std::vector<std::string> words{"--not"};
  words.insert(words.end(), goods.begin(), goods.end());
  return words;
}

}  // namespace

Repository::Repository(std::string folder) : folder_(std::move(folder)) {
  if (!std::filesystem::is_directory(folder_)) throw BadRepository(folder_ + ": no such folder");
  const Ended asked = git(folder_, {"rev-parse", "--git-dir"});
  if (!asked.ok()) throw BadRepository(folder_ + ": " + first_line(asked.err));
}

std::vector<std::string> Repository::lines(const std::vector<std::string>& arguments) const {
  std::istringstream text(ask(folder_, arguments));
  std::vector<std::string> all;
  for (std::string line; std::getline(text, line);) all.push_back(line);
  return all;
}

std::string Repository::resolve(const std::string& revision) const {
  const Ended ended = git(
      folder_, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
  if (ended.ok()) return first_line(ended.out);
  throw BadRepository(fmt::format("{}: no commit \"{}\"", folder_, revision));
}

Commit Repository::describe(const std::string& hash) const {
  const auto all =
      lines({"show", "--no-patch", "--format=%s%n%an%n%ad", "--date=iso-strict", hash});
  return {hash, all.at(0), all.at(1), all.at(2)};
}

std::vector<std::string> Repository::merge_bases(const std::string& a, const std::string& b) const {
  const Ended ended = git(folder_, {"merge-base", "--all", a, b});
  std::istringstream text(ended.out);
  std::vector<std::string> all;
  for (std::string line; std::getline(text, line);) all.push_back(line);
  return all;
}

std::vector<std::string> Repository::halving_order(const std::string& bad,
                                                   const std::vector<std::string>& goods) const {
  std::vector<std::string> words{"rev-list", "--bisect-all", bad};
  for (std::string& word : without(goods)) words.push_back(std::move(word));
  std::vector<std::string> order;
  for (const std::string& line : lines(words)) {  // each line: "hash (dist=3, refs…)"
    const std::string hash = line.substr(0, line.find(' '));
    if (hash != bad) order.push_back(hash);
  }
  return order;
}

std::vector<std::string> Repository::range(const std::string& bad,
                                           const std::vector<std::string>& goods) const {
  std::vector<std::string> words{"rev-list", "--topo-order", "--reverse", bad};
  for (std::string& word : without(goods)) words.push_back(std::move(word));
  return lines(words);
}

Worktree::Worktree(const Repository& repository)
    : repository_(repository), folder_("plumb-bisect"), path_(folder_.path() / "worktree") {
  ask(repository_.folder(), {"worktree", "add", "--detach", "--no-checkout", path_.string()});
}

Worktree::~Worktree() {
  try {
    // --force twice also removes a locked worktree
    git(repository_.folder(), {"worktree", "remove", "--force", "--force", path_.string()}, true);
  } catch (const std::exception&) {  // the folder is deleted in any case
  }
}

void Worktree::check_out(const std::string& hash) const {
  ask(path_.string(), {"checkout", "--quiet", "--force", "--detach", hash});
}

void Worktree::start_bisect(const std::string& bad, const std::vector<std::string>& goods) const {
  // Without --no-checkout git would check out the next commit to test, and ask for merge bases.
  // Only its records are used.
  std::vector<std::string> words{"bisect", "start", "--no-checkout", bad};
  words.insert(words.end(), goods.begin(), goods.end());
  git(path_.string(), words);
}

void Worktree::mark(const std::string& hash, Verdict verdict) const {
  const char* word = verdict == Verdict::good ? "good" : verdict == Verdict::bad ? "bad" : "skip";
  git(path_.string(), {"bisect", word, hash});
}

std::string Worktree::bisect_log() const { return git(path_.string(), {"bisect", "log"}).out; }

}  // namespace plumb::bisect
