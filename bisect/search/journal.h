// SPDX-License-Identifier: Apache-2.0
//
// The state file of a search: JSON, a line each for what was asked in all, for every answer and for
// every decision, each on the disk before the search goes on. The same command with the same file
// goes on where it stopped.
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

// A state file that cannot be used: one line that says which, where and why.
class BadJournal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Journal {
 public:
  // path: "" keeps nothing. `question` is everything that an answer depends on beside its key; a
  // file that answers another one, or that another process has open, is refused with BadJournal.
  // A last line that a crash has cut off is dropped, and `cut()` says so.
  Journal(std::string path, std::string command, nlohmann::json question);
  bool has(const std::string& key) const { return answers_.contains(key); }
  // The remembered answer of this key, converted. Nothing if there is none. If `convert` throws a
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
  // Throws std::system_error if it cannot be kept.
  void record(const std::string& key, nlohmann::json answer, const std::string& why);
  // A decision. One that the file had already when it was opened is not written again.
  void note(const std::string& text);

  std::size_t remembered() const { return remembered_; }  // answers that were there at the start
  bool cut() const { return cut_; }
  const std::string& path() const { return path_; }

 private:
  struct Remembered {
    nlohmann::json answer;
    std::size_t line = 0;  // of the file, from 1
  };
  [[noreturn]] void refuse(const std::string& key, std::string_view why) const;
  void open();
  void take_over(const std::vector<nlohmann::json>& lines, const nlohmann::json& header);
  void append(const nlohmann::json& line);

  // Closed whatever happens, and with it the lock.
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
  std::set<std::string> notes_;  // that were there at the start
  std::size_t remembered_ = 0, lines_ = 0;
  bool cut_ = false;
};

// A state file as it was read: its first line is the header {"schema", "command", "question"}, the
// others are {"key", "answer", "why"} or {"note"}.
struct JournalText {
  std::vector<nlohmann::json> lines;
  std::size_t whole_bytes = 0;  // of the lines that are whole
  bool cut = false;
};
// Throws BadJournal.
JournalText read_journal(const std::string& path);

// The decision log, for people: a line or more each, in order.
std::string explain(const JournalText& journal);

}  // namespace plumb::bisect
