// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace plumb::bisect {

namespace {

using nlohmann::json;

constexpr int kSchema = 1;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw BadJournal(path + ": " + why);
}

bool is_header(const json& line) {
  return line.is_object() && line.contains("schema") && line.contains("command") &&
         line.contains("question");
}

bool is_entry(const json& line) {
  if (!line.is_object()) return false;
  if (line.contains("note")) return line["note"].is_string();
  return line.contains("answer") && line.contains("key") && line["key"].is_string() &&
         line.contains("why") && line["why"].is_string();
}

json parse_line(const std::string& path, std::size_t number, const std::string& text) {
  const json line = json::parse(text, nullptr, false);
  const bool known = number == 1 ? is_header(line) : is_entry(line);
  if (!known)
    fail(fmt::format("{}:{}", path, number), "is not a line of a state file of plumb bisect");
  if (number == 1 && line["schema"] != kSchema) {
    fail(path, fmt::format("has schema {}, this plumb reads {}", line["schema"].dump(), kSchema));
  }
  return line;
}

// Paths and foreign texts may not be valid UTF-8, which JSON requires.
std::string json_text(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Describes the first member in which two questions differ.
std::string difference(const json& asked, const json& kept, const std::string& within = "") {
  for (const auto& [member, value] : asked.items()) {
    const std::string name = within + member;
    if (!kept.contains(member)) return fmt::format("the file has no {}", name);
    if (kept[member] == value) continue;
    if (value.is_object() && kept[member].is_object()) {
      return difference(value, kept[member], name + " ");
    }
    return fmt::format("{} is {} in the file and {} in this command", name, json_text(kept[member]),
                       json_text(value));
  }
  for (const auto& [member, value] : kept.items()) {
    if (!asked.contains(member))
      return fmt::format("{}{} is {} in the file and missing in this command", within, member,
                         json_text(value));
  }
  return "";
}

// An answer can be any JSON value. If it is an object, the members common to all searches are
// printed.
std::string answer_text(const json& line) {
  const json& answer = line["answer"];
  const std::string key = line["key"],
                    why = "\n    asked because: " + line["why"].get<std::string>();
  const auto word = [&](const char* name) {
    return answer.contains(name) && answer[name].is_string() ? answer[name].get<std::string>() : "";
  };
  if (!answer.is_object() || word("verdict").empty()) {
    return key + ": " + json_text(answer) + why + "\n";
  }
  std::string text = (word("text").empty() ? key : word("text")) + ": " + word("verdict");
  if (!word("reason").empty()) text += ", " + word("reason");
  if (answer.contains("failures")) {
    text += fmt::format(", {} of {} runs failed", json_text(answer["failures"]),
                        json_text(answer.value("runs", json(0))));
  }
  if (answer.contains("seconds") && answer["seconds"].is_number())
    text += fmt::format(" ({:.1f} s)", answer["seconds"].get<double>());
  return text + why + "\n";
}

}  // namespace

JournalText read_journal(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(path, "is a folder");
  // Refuse devices: /dev/zero would never end.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    fail(path, "is not a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  JournalText journal;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    journal.cut = end == std::string::npos;
    if (journal.cut) break;
    journal.lines.push_back(parse_line(path, journal.lines.size() + 1, text.substr(at, end - at)));
    journal.whole_bytes = at = end + 1;
  }
  return journal;
}

Journal::Journal(std::string path, std::string command, json question) : path_(std::move(path)) {
  if (path_.empty()) return;
  open();
  const json header{{"schema", kSchema}, {"command", command}, {"question", question}};
  // Converted to text and back, so that it compares equal to a header that was read from a file.
  take_over(read_journal(path_).lines, json::parse(json_text(header)));
}

Journal::File::~File() {
  if (descriptor >= 0) close(descriptor);
}

void Journal::open() {
  file_.descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_.descriptor < 0) fail(path_, std::strerror(errno));
  if (flock(file_.descriptor, LOCK_EX | LOCK_NB) != 0)
    fail(path_, "another plumb bisect is using it");
  const JournalText text = read_journal(path_);
  cut_ = text.cut;
  if (cut_ && ftruncate(file_.descriptor, static_cast<off_t>(text.whole_bytes)) != 0) {
    fail(path_, std::strerror(errno));
  }
}

void Journal::take_over(const std::vector<json>& lines, const json& header) {
  if (lines.empty()) return append(header);
  if (lines.front()["command"] != header["command"]) {
    fail(path_, "is a state file of " + json_text(lines.front()["command"]));
  }
  const std::string other = difference(header["question"], lines.front()["question"]);
  if (!other.empty()) fail(path_, "answers another question: " + other);
  for (const json& line : lines) {
    ++lines_;
    if (line.contains("key")) answers_[line["key"]] = {line["answer"], lines_};
    if (line.contains("note")) notes_.insert(line["note"]);
  }
  remembered_ = answers_.size();
}

void Journal::append(const json& line) {
  if (file_.descriptor < 0) return;
  const std::string text = json_text(line) + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file_.descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw std::system_error(errno, std::generic_category(), "cannot write " + path_);
    at += static_cast<std::size_t>(written);
  }
  fsync(file_.descriptor);
  ++lines_;
}

void Journal::refuse(const std::string& key, std::string_view why) const {
  fail(fmt::format("{}:{}", path_, answers_.at(key).line),
       fmt::format("the answer to \"{}\" cannot be read ({}): remove it or use another --state",
                   key, why));
}

void Journal::record(const std::string& key, json answer, const std::string& why) {
  append({{"key", key}, {"answer", answer}, {"why", why}});
  answers_[key] = {std::move(answer), lines_};
}

void Journal::note(const std::string& text) {
  if (!notes_.contains(text)) append({{"note", text}});
}

std::string explain(const JournalText& journal) {
  if (journal.lines.empty()) return "the state file is empty\n";
  const json& header = journal.lines.front();
  std::string text = fmt::format("{} of\n", header["command"].get<std::string>());
  for (const auto& [name, value] : header["question"].items()) {
    text += fmt::format("  {} = {}\n", name, json_text(value));
  }
  for (std::size_t i = 1; i < journal.lines.size(); ++i) {
    const json& line = journal.lines[i];
    text += fmt::format("{:>3}  ", i);
    text += line.contains("note") ? line["note"].get<std::string>() + "\n" : answer_text(line);
  }
  if (journal.cut) text += "the last line was cut off and is ignored\n";
  return text;
}

}  // namespace plumb::bisect
