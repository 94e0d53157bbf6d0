// SPDX-License-Identifier: Apache-2.0
//
// Small git repositories with a planted change. Their builds take milliseconds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bisect/search/process.h"

namespace plumb::bisect {

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ScriptedRepository {
 public:
  using Files = std::map<std::string, std::string>;

  // `commits` commits; commit i has the files files(i) and the subject "commit i".
  ScriptedRepository(int commits, const std::function<Files(int)>& files) {
    git({"init", "--quiet", "--initial-branch=main"});
    std::string stream;
    for (int i = 0; i < commits; ++i) {
      stream += "commit refs/heads/main\nmark :" + std::to_string(i + 1) + "\n";
      stream += "committer A Person <person@example.org> " + std::to_string(1700000000 + 60 * i) +
                " +0000\n" + data("commit " + std::to_string(i)) + "deleteall\n";
      for (const auto& [name, text] : files(i))
        stream += "M 100755 inline " + name + "\n" + data(text);
    }
    std::ofstream(path() / "stream", std::ios::binary) << stream;
    shell("git fast-import --quiet <stream && rm stream && git reset --quiet --hard");
    hashes_ = lines(git({"rev-list", "--reverse", "main"}));
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  // A path outside of the repository, for files that builds and runs write.
  std::string outside(const std::string& name) const { return outside_.path() / name; }
  const std::string& hash(int commit) const { return hashes_.at(static_cast<std::size_t>(commit)); }

  std::string git(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"git", "-c", "user.name=A Person", "-c", "user.email=p@example.org"});
    const Ended ended = run_process({words, path().string(), {}, 0});
    EXPECT_TRUE(ended.ok()) << words.at(5) << ": " << ended.err;
    return ended.out;
  }
  std::string shell(const std::string& script) const {
    const Ended ended = run_process({{"/bin/sh", "-c", script}, path().string(), {}, 0});
    EXPECT_TRUE(ended.ok()) << script << ": " << ended.err;
    return ended.out;
  }

  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
      all.push_back(text.substr(at, end - at));
    }
    return all;
  }

 private:
  static std::string data(const std::string& text) {
    return "data " + std::to_string(text.size()) + "\n" + text + "\n";
  }

  TemporaryFolder folder_{"plumb-test-repository"}, outside_{"plumb-test-outside"};
  std::vector<std::string> hashes_;
};

// A shell script in place of plumb. It writes a report of one case, which fails with probability
// `of_five` / 5 if the commit is bad. Its random state is in the file BISECT_TEST_DICE.
inline std::string stand_in(bool bad, int of_five = 5, const std::string& tensor = "out") {
  return std::string("#!/bin/sh\n") +
         R"(while [ $# -gt 0 ]; do [ "$1" = --json ] && json=$2; shift; done
read -r x <"$BISECT_TEST_DICE"
x=$(( (x * 1103515245 + 12345) & 2147483647 ))
echo $x >"$BISECT_TEST_DICE"
head='"case":"rms_norm/one_token/eager","platform":"sim-sm90"'
)" + "if " +
         (bad ? "[ $(( (x >> 16) % 5 )) -lt " + std::to_string(of_five) + " ]" : "false") +
         R"(; then
  echo '{"cases":[{'"$head"',"outcome":"failed","points":1,"launches":2,"comparisons":1,"diagnosis":"matches no fault of the library","failures":[{"context":"step 0","lines":[")" +
         tensor + R"(: 1 of 1 rows (row 0) wrong; row 0"],"tensors":[{"tensor":")" + tensor +
         R"("}]}]}]}' >"$json"
  exit 1
fi
echo '{"cases":[{'"$head"',"outcome":"passed","points":4,"launches":8,"comparisons":4}]}' >"$json"
)";
}

// Makes `plumb` from `plumb.in` and logs each build. A commit with a file named `broken` does not
// build.
inline std::string build_command(const ScriptedRepository& repository) {
  return "if [ -e broken ]; then echo 'error: broken' >&2; exit 2; fi; cp plumb.in plumb && echo "
         "built >>" +
         repository.outside("builds");
}

struct Bisected {
  Ended ended;
  nlohmann::json report;
  std::string first_bad() const {
    return report.contains("first_bad") && report["first_bad"].is_object()
               ? report["first_bad"]["hash"].get<std::string>()
               : "";
  }
  std::vector<std::string> candidates() const {
    std::vector<std::string> all;
    for (const auto& entry : report.value("candidates", nlohmann::json::array())) {
      all.push_back(entry["hash"]);
    }
    return all;
  }
};

// Runs plumb bisect with these words, and with --json unless they contain it.
inline Bisected plumb_bisect(const ScriptedRepository& repository, std::vector<std::string> words,
                             const std::vector<std::string>& environment = {}) {
  const std::string json = repository.outside("result.json");
  std::filesystem::remove(json);
  words.insert(words.begin(), {PLUMB_BINARY, "bisect"});
  if (std::find(words.begin(), words.end(), "--json") == words.end()) {
    words.insert(words.end(), {"--json", json});
  }
  Bisected bisected{run_process({words, repository.path().string(), environment, 0}), {}};
  if (std::filesystem::exists(json)) bisected.report = nlohmann::json::parse(file_text(json));
  return bisected;
}

}  // namespace plumb::bisect
