// SPDX-License-Identifier: Apache-2.0
#include "trace/profiles/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "plumb_profile_files.h"

namespace plumb::trace {

namespace {

namespace fs = std::filesystem;

// The leading numbers of a version: {0, 7} for "0.7.post2".
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  const char* at = version.data();
  const char* const end = at + version.size();
  for (;;) {
    int number = 0;
    const auto [stop, trouble] = std::from_chars(at, end, number);
    if (trouble != std::errc()) return numbers;
    numbers.push_back(number);
    if (stop == end || *stop != '.') return numbers;
    at = stop + 1;
  }
}

std::string value_of(const std::map<std::string, std::string>& provenance, const char* name) {
  const auto found = provenance.find(name);
  return found == provenance.end() ? "" : found->second;
}

bool is_between(const std::string& version, const std::string& from, const std::string& before) {
  const std::vector<int> numbers = numbers_of(version);
  if (numbers.empty()) return from.empty() && before.empty();
  return (from.empty() || numbers_of(from) <= numbers) &&
         (before.empty() || numbers < numbers_of(before));
}

std::vector<Profile> own_profiles() {
  std::vector<Profile> all;
  for (const cases::CaseFileText& file : cases::kProfileFiles) {
    const std::string name = std::string(file.name) + ".toml";
    std::ranges::move(parse_profiles(file.text, name), std::back_inserter(all));
  }
  return all;
}

std::vector<Profile>& profiles() {
  static std::vector<Profile> all = own_profiles();
  return all;
}

void add_file(const fs::path& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;  // bytes
  std::string text(kMost + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file.good()) {
    throw BadProfile(fmt::format("\"{}\" cannot be read", path.string()));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMost) throw BadProfile(path.string() + ": more than 1 MiB");
  std::ranges::move(parse_profiles(text, path.string()), std::back_inserter(profiles()));
}

void replace_values(const Promise& with, Promise& promise) {
  promise.source += (promise.source.empty() ? "" : ", ") + with.source;
  for (const auto& [name, word] : with.words) promise.words[name] = word;
  for (const auto& [name, value] : with.numerics) promise.numerics[name] = value;
}

}  // namespace

std::string Promise::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, word] : words) parts.push_back(name + " = " + word);
  for (const auto& [name, value] : numerics) {
    std::visit([&](const auto& one) { parts.push_back(fmt::format("{} = {}", name, one)); }, value);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool Profile::is_of(const std::map<std::string, std::string>& provenance) const {
  const std::string card = value_of(provenance, "platform");
  const bool fits = platform.empty() || card == platform || card.starts_with(platform + "-");
  return fits && (engine.empty() || value_of(provenance, "engine") == engine) &&
         is_between(value_of(provenance, "version"), from, before);
}

std::string Profile::name() const {
  std::string text = engine.empty() ? "any engine" : engine;
  if (!from.empty()) text += " from " + from;
  if (!before.empty()) text += " before " + before;
  return platform.empty() ? text : text + ", " + platform;
}

const std::vector<Profile>& known_profiles() { return profiles(); }

void add_profiles(const std::string& path) {
  std::error_code trouble;
  if (!fs::is_directory(path, trouble)) return add_file(path);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, trouble)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  if (trouble || files.empty()) throw BadProfile(path + ": no file *.toml in it");
  std::ranges::sort(files);
  for (const fs::path& file : files) add_file(file);
}

void apply_profiles(TraceStep& step) {
  for (const Profile& profile : known_profiles()) {
    if (!profile.is_of(step.provenance)) continue;
    for (TraceCall& call : step.calls) {
      const auto found = profile.ops.find(call.op);
      if (found != profile.ops.end()) replace_values(found->second, call.profile);
    }
  }
}

std::string right_as(const TraceCall& call, const std::function<bool(const Promise&)>& is_right) {
  std::vector<Promise> asked{call.profile};
  const auto same = [](const Promise& a, const Promise& b) {
    return a.words == b.words && a.numerics == b.numerics;
  };
  for (const Profile& profile : known_profiles()) {
    const auto found = profile.ops.find(call.op);
    if (found == profile.ops.end()) continue;
    const Promise& promise = found->second;
    if (std::ranges::any_of(asked, [&](const Promise& one) { return same(one, promise); })) {
      continue;
    }
    if (is_right(promise)) {
      return fmt::format("{} ({}): {}", profile.name(), promise.source, promise.text());
    }
    asked.push_back(promise);
  }
  return "";
}

}  // namespace plumb::trace
