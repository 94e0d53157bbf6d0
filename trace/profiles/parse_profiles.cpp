// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cases/studies/outside_call.h"
#include "cases/tables/case_file.h"
#include "cases/tables/registry.h"
#include "cases/tensors/toml.h"
#include "trace/known_call.h"
#include "trace/profiles/profile.h"

namespace plumb::trace {

namespace {

// Parses a file of profiles: the key `engine`, and [[profile]] tables with `ops`.
class ProfileFile {
 public:
  ProfileFile(std::string_view text, const std::string& file) : file_(file) {
    try {
      document_ = toml::parse(text);
    } catch (const toml::parse_error& error) {
      throw BadProfile(fmt::format("{}: {}", at(error.source()), error.description()));
    } catch (const cases::MalformedToml& error) {
      throw BadProfile(fmt::format("{}: {}", file_, error.what()));
    }
  }

  std::vector<Profile> profiles() const {
    std::string engine;
    const toml::array* tables = nullptr;
    for (const auto& [key, node] : document_) {
      if (key == "engine") {
        engine = text_of(node, key);
      } else if (key == "profile") {
        tables = node.as_array();
        if (tables == nullptr) refuse(node, "write [[profile]], with two brackets");
      } else {
        refuse_name(node, "a file of profiles", key, {"engine", "profile"});
      }
    }
    if (tables == nullptr) throw BadProfile(file_ + ": has no [[profile]]");
    std::vector<Profile> all;
    for (const toml::node& node : *tables) all.push_back(profile_of(table_of(node, "profile")));
    for (Profile& one : all) one.engine = engine;
    return all;
  }

 private:
  std::string at(const toml::source_region& place) const {
    return fmt::format("{}:{}", file_, place.begin.line);
  }
  [[noreturn]] void refuse(const toml::node& node, const std::string& why) const {
    throw BadProfile(fmt::format("{}: {}", at(node.source()), why));
  }
  [[noreturn]] void refuse_name(const toml::node& node, std::string_view where,
                                std::string_view name,
                                const std::vector<std::string>& names) const {
    const std::string nearest = cases::nearest_name(name, names);
    refuse(node, fmt::format("{} has no \"{}\"{}", where, name,
                             nearest.empty() ? fmt::format("; it has {}", fmt::join(names, ", "))
                                             : fmt::format(" (did you mean {}?)", nearest)));
  }

  std::string text_of(const toml::node& node, std::string_view key) const {
    if (!node.is_string()) refuse(node, fmt::format("{} is a text", std::string_view(key)));
    return *node.value<std::string>();
  }
  const toml::table& table_of(const toml::node& node, std::string_view key) const {
    const toml::table* const table = node.as_table();
    if (table == nullptr) refuse(node, fmt::format("{} is a table", key));
    return *table;
  }

  Profile profile_of(const toml::table& table) const {
    Profile made;
    for (const auto& [key, node] : table) {
      if (key == "from") {
        made.from = version_of(node, key);
      } else if (key == "before") {
        made.before = version_of(node, key);
      } else if (key == "platform") {
        made.platform = text_of(node, key);
      } else if (key == "ops") {
        for (const auto& [op, promise] : table_of(node, key)) {
          made.ops.emplace(op.str(), promise_of(op.str(), table_of(promise, op)));
        }
      } else {
        refuse_name(node, "a profile", key, {"from", "before", "platform", "ops"});
      }
    }
    if (made.ops.empty()) refuse(table, "a profile needs [profile.ops.NAME]");
    return made;
  }

  std::string version_of(const toml::node& node, std::string_view key) const {
    const std::string text = text_of(node, key);
    const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
    if (!plain) refuse(node, fmt::format("{} is numbers and dots, not \"{}\"", key, text));
    return text;
  }

  Promise promise_of(std::string_view name, const toml::table& table) const {
    Promise promise;
    promise.source = at(table.source());
    const auto checked = [&](const toml::node& node, const auto& check) {
      try {
        check();
      } catch (const cases::BadRow& error) {
        refuse(node, error.what());
      }
    };
    const cases::OpDefinition* op = nullptr;
    checked(table, [&] { op = &cases::known_op(std::string(name)); });
    for (const auto& [key, node] : table) {
      if (key == "numerics") {
        promise.numerics = numerics_of(table_of(node, key));
        checked(node, [&] { cases::numerics_with(settings_of(promise.numerics)); });
        continue;
      }
      std::vector<std::string> names{"numerics"};
      for (const std::string_view word : op->words()) names.emplace_back(word);
      if (std::ranges::find(names, key.str()) == names.end()) refuse_name(node, name, key, names);
      const std::string word = text_of(node, key);
      checked(node, [&] { op->check_word(key.str(), word, name); });
      promise.words.emplace(key.str(), word);
    }
    return promise;
  }

  std::map<std::string, TraceScalar> numerics_of(const toml::table& table) const {
    std::map<std::string, TraceScalar> numerics;
    for (const auto& [key, node] : table) {
      TraceScalar& value = numerics[std::string(key.str())];
      if (node.is_string()) {
        value = *node.value<std::string>();
      } else if (node.is_integer()) {
        value = *node.value<std::int64_t>();
      } else if (node.is_floating_point()) {
        value = *node.value<double>();
      } else {
        refuse(node, fmt::format("{} is a number or a word", key.str()));
      }
    }
    return numerics;
  }

  std::string file_;
  toml::table document_;
};

}  // namespace

std::vector<Profile> parse_profiles(std::string_view text, const std::string& file) {
  return ProfileFile(text, file).profiles();
}

}  // namespace plumb::trace
