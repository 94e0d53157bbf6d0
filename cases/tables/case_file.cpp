// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cases/recorded/recorded_file.h"
#include "cases/tensors/toml.h"

namespace plumb::cases {

namespace {

std::string at(std::string_view file, const toml::source_region& region) {
  return fmt::format("{}:{}", file, region.begin.line);
}

const Parameter* find_parameter(const RowSchema& schema, std::string_view name) {
  const auto found = std::find_if(schema.parameters.begin(), schema.parameters.end(),
                                  [&](const Parameter& p) { return p.name == name; });
  return found == schema.parameters.end() ? nullptr : &*found;
}

bool is_word(const RowSchema& schema, std::string_view name) {
  const std::vector<std::string_view> words = schema.words();
  return std::find(words.begin(), words.end(), name) != words.end();
}

// True for a float member of the C struct, as in "eps = 1e-3".
bool is_real(const RowSchema& schema, std::string_view name) {
  return std::ranges::find(schema.reals, name) != schema.reals.end();
}

// True for a row parameter that changes a stride, as any op's row may have. "gap_<member>" adds
// elements to the stride. "align_<member>" rounds it up to a multiple. "far_<member>" moves the
// second half of the rows past 2^31 or 2^32 elements. The op's table checks later that the stride
// exists.
bool is_of_stride(const RowSchema& schema, std::string_view name) {
  return schema.name != "decode_step" && find_parameter(schema, name) == nullptr &&
         (name.starts_with("gap_") || name.starts_with("align_") || name.starts_with("far_")) &&
         name.ends_with("stride");
}

[[noreturn]] void unknown(const RowSchema& schema, std::string_view where, std::string_view name,
                          std::vector<std::string> names = {}) {
  for (const Parameter& p : schema.parameters) names.emplace_back(p.name);
  for (const std::string_view word : schema.words()) names.emplace_back(word);
  for (const std::string_view real : schema.reals) names.emplace_back(real);
  const std::string nearest = nearest_name(name, names);
  throw BadRow(fmt::format("{}: {} has no parameter \"{}\"{}", where, schema.name, name,
                           nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

void set_integer(const Parameter& parameter, Row& row, std::int64_t value) {
  if (value < parameter.least || value > parameter.most) {
    throw BadRow(fmt::format("{}: {} = {} is outside {} .. {} ({})", row.where, parameter.name,
                             value, parameter.least, parameter.most, parameter.meaning));
  }
  row.integers[std::string(parameter.name)] = value;
}

Tier parse_tier(std::string_view text, std::string_view key, std::string_view where) {
  if (text == "smoke") return Tier::smoke;
  if (text == "default") return Tier::standard;
  if (text == "full") return Tier::full;
  throw BadRow(
      fmt::format("{}: {} is \"smoke\", \"default\" or \"full\", not \"{}\"", where, key, text));
}

std::string parse_trivial(const std::string& text, std::string_view where) {
  if (text == "empty" || text == "zero" || text == "identity") return text;
  throw BadRow(
      fmt::format("{}: trivial is \"empty\", \"zero\" or \"identity\", not \"{}\"", where, text));
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string text_of(const toml::node& node, std::string_view key, std::string_view where) {
  const auto text = node.value<std::string>();
  if (!node.is_string()) throw BadRow(fmt::format("{}: {} must be a string", where, key));
  return *text;
}

void set_from_node(const RowSchema& schema, Row& row, std::string_view key, const toml::node& node,
                   std::string_view where) {
  if (key == "name") {
    row.name = text_of(node, key, where);
  } else if (key == "why") {
    row.why = text_of(node, key, where);
  } else if (key == "tier") {
    row.tier = parse_tier(text_of(node, key, where), key, where);
  } else if (key == "concurrent") {
    row.concurrent = parse_tier(text_of(node, key, where), key, where);
  } else if (key == "plugin" && schema.name != "decode_step") {
    row.plugin = parse_tier(text_of(node, key, where), key, where);
  } else if (key == "trivial") {
    row.trivial = parse_trivial(text_of(node, key, where), where);
  } else if (key == "known_bug") {
    row.known_bug = text_of(node, key, where);
  } else if (key == "only") {
    if (text_of(node, key, where) != "real")
      throw BadRow(fmt::format("{}: only is \"real\"", where));
    row.real_only = true;
  } else if (key == "eager_only") {
    if (!node.is_boolean()) throw BadRow(fmt::format("{}: eager_only is true or false", where));
    row.eager_only = *node.value<bool>();
  } else if (key == "golden") {
    if (!node.is_boolean()) throw BadRow(fmt::format("{}: golden is true or false", where));
    row.golden = *node.value<bool>();
  } else if (key == kRecorded && schema.name != "decode_step") {
    row.words[std::string(key)] = text_of(node, key, where);
  } else if (is_word(schema, key)) {
    row.words[std::string(key)] = text_of(node, key, where);
    schema.check_word(key, row.word(key), where);
  } else if (const Parameter* parameter = find_parameter(schema, key)) {
    if (!node.is_integer()) throw BadRow(fmt::format("{}: {} must be a whole number", where, key));
    row.where = where;
    set_integer(*parameter, row, *node.value<std::int64_t>());
  } else if (is_real(schema, key)) {
    if (!node.is_number()) throw BadRow(fmt::format("{}: {} must be a number", where, key));
    row.reals[std::string(key)] = static_cast<float>(*node.value<double>());
  } else if (is_of_stride(schema, key)) {
    if (!node.is_integer()) throw BadRow(fmt::format("{}: {} must be a whole number", where, key));
    row.integers[std::string(key)] = *node.value<std::int64_t>();
  } else {
    unknown(schema, where, key,
            {"name", "why", "tier", "concurrent", "plugin", "trivial", "known_bug", "only",
             "eager_only", "golden"});
  }
}

Row parse_row(const RowSchema& schema, const toml::table& table, std::string_view file) {
  Row row;
  row.op = schema.name;
  for (const Parameter& p : schema.parameters) row.integers[std::string(p.name)] = p.default_value;
  for (const auto& [key, node] : table) {
    set_from_node(schema, row, key.str(), node, at(file, node.source()));
  }
  row.where = at(file, table.source());
  if (!table.contains("golden")) row.golden = row.tier != Tier::full;
  if (row.trivial == "empty" || !row.known_bug.empty() || row.real_only) row.golden = false;
  if (!is_plain_name(row.name)) {
    throw BadRow(fmt::format("{}: a row needs a name of a-z, 0-9 and _", row.where));
  }
  if (row.why.empty()) {
    throw BadRow(fmt::format("{}: row {} does not say why", row.where, row.name));
  }
  if (row.real_only && row.tier != Tier::full) {
    throw BadRow(fmt::format("{}: only = \"real\" needs tier = \"full\"", row.where));
  }
  return row;
}

toml::table parse(std::string_view text, std::string_view file) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw BadRow(fmt::format("{}: {}", at(file, error.source()), error.description()));
  } catch (const MalformedToml& error) {
    throw BadRow(fmt::format("{}: {}", file, error.what()));
  }
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  if (!best.empty()) return best;
  // Otherwise accept a common beginning: "epsilon" for eps, "output" for out.
  constexpr std::size_t kTelling = 3;  // letters; shorter ones match by chance
  for (const std::string& name : names) {
    const std::size_t shorter = std::min(wrong.size(), name.size());
    const bool begins = wrong.substr(0, shorter) == std::string_view(name).substr(0, shorter);
    if (begins && shorter >= kTelling && shorter > best.size()) best = name;
  }
  return best;
}

std::vector<Row> parse_rows(const RowSchema& schema, std::string_view text, std::string_view file) {
  const toml::table document = parse(text, file);
  std::vector<Row> rows;
  std::set<std::string> names;
  for (const auto& [key, node] : document) {
    if (key == "op") continue;
    const std::string where = at(file, node.source());
    if (key != "row") {
      throw BadRow(fmt::format("{}: expected [[row]], not \"{}\"", where, key.str()));
    }
    const toml::array* tables = node.as_array();
    if (!tables) throw BadRow(fmt::format("{}: write [[row]], with two brackets", where));
    for (const toml::node& element : *tables) {
      const toml::table* table = element.as_table();
      if (!table) throw BadRow(fmt::format("{}: a row is a table", at(file, element.source())));
      rows.push_back(parse_row(schema, *table, file));
      if (!names.insert(rows.back().name).second) {
        throw BadRow(fmt::format("{}: {} is there twice", rows.back().where, rows.back().name));
      }
    }
  }
  return rows;
}

namespace {

void set_real(Row& row, std::string_view name, std::string_view value) {
  float number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    throw BadRow(fmt::format("--set: {} needs a number, not \"{}\"", name, value));
  }
  row.reals[std::string(name)] = number;
}

}  // namespace

void set_parameter(const RowSchema& schema, Row& row, std::string_view name,
                   std::string_view value) {
  row.where = "--set";
  if (name == kKeepRows && !row.word(kRecorded).empty()) {
    if (!value.empty()) parse_kept_rows(value);
    row.words[std::string(name)] = value;
    return;
  }
  if (is_word(schema, name)) {
    schema.check_word(name, value, "--set");
    row.words[std::string(name)] = value;
    return;
  }
  const Parameter* parameter = find_parameter(schema, name);
  const bool of_stride = is_of_stride(schema, name);
  if (!parameter && is_real(schema, name)) return set_real(row, name, value);
  if (!parameter && !of_stride) unknown(schema, "--set", name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    throw BadRow(fmt::format("--set: {} needs a whole number, not \"{}\"", name, value));
  }
  if (of_stride) {
    row.integers[std::string(name)] = number;
  } else {
    set_integer(*parameter, row, number);
  }
}

std::string op_of_case_file(std::string_view text, std::string_view file) {
  const toml::table document = parse(text, file);
  const auto op = document["op"].value<std::string>();
  if (!op) throw BadRow(fmt::format("{}: needs op = \"...\" before its rows", file));
  if (!document.contains("row")) throw BadRow(fmt::format("{}: has no [[row]]", file));
  return *op;
}

}  // namespace plumb::cases
