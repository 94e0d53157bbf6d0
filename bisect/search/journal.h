// SPDX-License-Identifier: Apache-2.0
//
// The state file of a search, in JSON lines: one for the question, one for each answer, one for
// each decision. Each line is on disk before the search continues. The same command with the same
// file resumes the search.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb::bisect {

// A state file that cannot be used. The message is one line: which file, where, why.
class BadJournal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Journal {
 public:
  // path: "" keeps nothing. `question` must contain everything that answers depend on, except their
  // keys. Throws BadJournal for a file with another question, or one that another process has open.
  // An incomplete last line after a crash is dropped, and cut() returns true.
  Journal(std::string path, std::string command, nlohmann::json question);
  bool has(const std::string& key) const { return answers_.contains(key); }
  // The remembered answer of this key, converted; nullopt if there is none. If `convert` throws a
  // json::exception, another version of plumb wrote the answer, or it is damaged: throws BadJournal
  // with file, line and key.
  template <class Convert>
  auto find(const std::string& key, Convert&& convert) const
      -> std::optional<decltype(convert(std::declval<const nlohmann::json&>()))> {
    const auto found = answers_.find(key);
    if (found == answers_.end()) return std::nullopt;
    try {
      return convert(found->second.answer);
    } catch (const nlohmann::json::exception& error) {
      refuse(key, error.what());
    }
  }
  // Throws std::system_error if the answer cannot be written.
  void record(const std::string& key, nlohmann::json answer, const std::string& why);
  // Records a decision, unless the file contained it when it was opened.
  void note(const std::string& text);

  // Number of answers that the file contained at the start.
  std::size_t remembered() const { return remembered_; }
  bool cut() const { return cut_; }
  const std::string& path() const { return path_; }

 private:
  struct Remembered {
    nlohmann::json answer;
    std::size_t line = 0;  // line number in the file, from 1
  };
  [[noreturn]] void refuse(const std::string& key, std::string_view why) const;
  void open();
  void take_over(const std::vector<nlohmann::json>& lines, const nlohmann::json& header);
  void append(const nlohmann::json& line);

  // Owns the file descriptor and its lock; closes both in every case.
  struct File {
    int descriptor = -1;
    File() = default;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
  };

  std::string path_;
  File file_;
  std::map<std::string, Remembered> answers_;
  std::set<std::string> notes_;  // decisions that the file contained at the start
  std::size_t remembered_ = 0, lines_ = 0;
  bool cut_ = false;
};

// A state file as read. Its first line is the header {"schema", "command", "question"}; the others
// are {"key", "answer", "why"} or {"note"}.
struct JournalText {
  std::vector<nlohmann::json> lines;
  std::size_t whole_bytes = 0;  // size of the complete lines
  bool cut = false;
};
// Throws BadJournal.
JournalText read_journal(const std::string& path);

// The answers and decisions in order, as text for people.
std::string explain(const JournalText& journal);

}  // namespace plumb::bisect
