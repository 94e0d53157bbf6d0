// SPDX-License-Identifier: Apache-2.0
#include "cases/recorded/recorded_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace plumb::cases {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "plumb recorded row ", kVersion = "1";
constexpr std::size_t kDigits = 32, kMostHead = std::size_t{1} << 20;
constexpr std::size_t kMostDimensions = 8, kMostTensors = 64;
// Limit for the dense size of all tensors together. Blocks that the file leaves out count too.
constexpr std::size_t kMostLaidOutBytes = 2 * kMostRecordedBytes;

std::string digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw BadRow(fmt::format("{}: {}", path, why));
}

// True if the text is safe to print and to write into a case file: printable ASCII without
// quotation mark and backslash.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Replaces characters that are not plain by '?', in a text that comes from an engine.
std::string plain_of(std::string text) {
  std::ranges::replace_if(text, [](char c) { return !is_plain({&c, 1}); }, '?');
  return text;
}

std::string head_of(const RecordedFile& call) {
  Json row = Json::object(), reals = Json::object(), tensors = Json::array();
  for (const auto& [name, value] : call.row.integers) row[name] = value;
  for (const auto& [name, value] : call.row.words) row[name] = value;
  for (const auto& [name, value] : call.row.reals) reals[name] = static_cast<double>(value);
  for (const RecordedTensor& tensor : call.tensors) {
    Json& one = tensors.emplace_back(
        Json{{"name", tensor.name}, {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}});
    if (tensor.blocks) one["blocks"] = *tensor.blocks;
  }
  const Json head{
      {"op", call.op},         {"why", plain_of(call.why)}, {"fill", kRecorded},
      {"row", std::move(row)}, {"reals", std::move(reals)}, {"tensors", std::move(tensors)}};
  return head.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

const Json* member_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::vector<std::int64_t> numbers_of(const Json* list, std::size_t most, const std::string& path,
                                     std::string_view what) {
  if (list == nullptr || !list->is_array() || list->size() > most) {
    refuse(path, fmt::format("{}: not a list of at most {} numbers", what, most));
  }
  std::vector<std::int64_t> numbers;
  for (const Json& one : *list) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() > kMost) {
      refuse(path, fmt::format("{}: not whole numbers from 0", what));
    }
    numbers.push_back(one.get<std::int64_t>());
  }
  return numbers;
}

std::string text_at(const Json& object, std::string_view key, const std::string& path) {
  const Json* const text = member_of(object, key);
  if (text == nullptr || !text->is_string()) refuse(path, fmt::format("no text \"{}\"", key));
  auto said = text->get<std::string>();
  if (!is_plain(said)) refuse(path, fmt::format("\"{}\" is not plain text", key));
  return said;
}

Dtype dtype_named(const std::string& name, const std::string& path) {
  for (const Dtype dtype : {Dtype::u8, Dtype::i32, Dtype::i64, Dtype::bf16, Dtype::f32}) {
    if (name == name_of(dtype)) return dtype;
  }
  refuse(path, fmt::format("\"{}\" is not a dtype", name));
}

void check_size(const RecordedTensor& tensor, const std::string& path) {
  // A dimension of 0 counts as 1: the strides of an empty tensor must not overflow either.
  std::size_t bytes = size_of(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(size, 1));
    if (bytes > kMostRecordedBytes / count) {
      refuse(path, fmt::format("{}: more than {} MiB", tensor.name, kMostRecordedBytes >> 20));
    }
    bytes *= count;
  }
}

void check_blocks(const RecordedTensor& tensor, const std::string& path) {
  if (!tensor.blocks) return;
  std::int64_t last = -1;
  for (const std::int64_t block : *tensor.blocks) {
    if (block <= last || block >= tensor.shape.front()) {
      refuse(path, fmt::format("{}: not ascending blocks of the tensor", tensor.name));
    }
    last = block;
  }
}

RecordedTensor tensor_of(const Json& table, const std::string& path) {
  RecordedTensor tensor{.name = text_at(table, "name", path),
                        .dtype = dtype_named(text_at(table, "dtype", path), path),
                        .shape = {},
                        .blocks = {},
                        .bytes = {}};
  tensor.shape =
      numbers_of(member_of(table, "shape"), kMostDimensions, path, tensor.name + ".shape");
  if (tensor.shape.empty()) refuse(path, tensor.name + ": has no dimension");
  check_size(tensor, path);
  if (table.contains("blocks")) {
    tensor.blocks =
        numbers_of(member_of(table, "blocks"), kMostHead, path, tensor.name + ".blocks");
  }
  check_blocks(tensor, path);
  return tensor;
}

// Takes the bytes of each tensor from the front of `rest`, which follows the head.
void read_tensors(const Json& head, std::string_view rest, const std::string& path,
                  RecordedFile& call) {
  const Json* const tensors = member_of(head, "tensors");
  if (tensors == nullptr || !tensors->is_array() || tensors->size() > kMostTensors) {
    refuse(path, "no list of tensors");
  }
  std::set<std::string, std::less<>> names;
  std::size_t all = 0;
  for (const Json& one : *tensors) {
    if (!one.is_object()) refuse(path, "a tensor is not an object");
    RecordedTensor tensor = tensor_of(one, path);
    if (!names.insert(tensor.name).second) refuse(path, tensor.name + " is there twice");
    all += tensor.dense_bytes();
    if (all > kMostLaidOutBytes) {
      refuse(path, fmt::format("its tensors have more than {} MiB", kMostLaidOutBytes >> 20));
    }
    const std::size_t bytes = tensor.stored_bytes();
    if (bytes > rest.size()) refuse(path, fmt::format("{}: its bytes are not there", tensor.name));
    tensor.bytes = std::as_bytes(std::span(rest.substr(0, bytes)));
    rest.remove_prefix(bytes);
    call.tensors.push_back(std::move(tensor));
  }
  if (!rest.empty()) refuse(path, fmt::format("{} bytes behind the last tensor", rest.size()));
}

std::string value_text(const Json& value, const std::string& path) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string() || !is_plain(value.get_ref<const std::string&>())) {
    refuse(path, "row: a value is neither a whole number nor plain text");
  }
  return '"' + value.get<std::string>() + '"';
}

// Reads the real-valued members of the op's struct. Their names may equal names of row parameters.
void read_reals(const Json& head, const std::string& path, RecordedFile& call) {
  const Json* const reals = member_of(head, "reals");
  if (reals == nullptr || !reals->is_object()) refuse(path, "no object \"reals\"");
  for (const auto& [name, value] : reals->items()) {
    if (!is_word(name)) refuse(path, "reals: a name is not of a-z, 0-9 and _");
    const bool fits =
        value.is_number() && std::abs(value.get<double>()) <= std::numeric_limits<float>::max();
    if (!fits) refuse(path, fmt::format("reals: {} is not an fp32 number", name));
    call.row.reals[name] = static_cast<float>(value.get<double>());
  }
}

std::string case_file_of(const Json& head, const RecordedFile& call, const std::string& digest,
                         const std::string& path) {
  const Json* const row = member_of(head, "row");
  if (row == nullptr || !row->is_object()) refuse(path, "no object \"row\"");
  std::string text = fmt::format(
      "op = \"{}\"\n[[row]]\nname = \"{}\"\nwhy = \"{}\"\ntier = \"smoke\"\n{} = "
      "\"{}\"\n",
      call.op, recorded_row_name(digest), call.why, kRecorded, digest);
  static const std::set<std::string_view> kOfCaseFiles{
      "name", "why",    "tier",       "concurrent", "trivial", "known_bug",
      "only", "golden", "eager_only", "plugin",     kRecorded};
  for (const auto& [key, value] : row->items()) {
    if (!is_word(key)) refuse(path, "row: a name is not of a-z, 0-9 and _");
    if (kOfCaseFiles.contains(key)) {
      refuse(path, fmt::format("row: a recorded row has no {}", key));
    }
    text += fmt::format("{} = {}\n", key, value_text(value, path));
  }
  for (const auto& [name, value] : call.row.reals) {
    if (!row->contains(name)) text += fmt::format("{} = {:.9e}\n", name, value);
  }
  return text;
}

Json parse_head(std::string_view text, const std::string& path) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    refuse(path, "its head is not JSON");
  }
}

}  // namespace

std::size_t RecordedTensor::dense_bytes() const {
  std::size_t total = size_of(dtype);
  for (const std::int64_t size : shape) total *= static_cast<std::size_t>(size);
  return total;
}

std::size_t RecordedTensor::stored_bytes() const {
  if (!blocks || dense_bytes() == 0) return dense_bytes();
  return dense_bytes() / static_cast<std::size_t>(shape.front()) * blocks->size();
}

std::string recorded_row_name(std::string_view digest) {
  return fmt::format("{}_{}", kRecorded, digest.substr(0, 12));
}

std::string encode_recorded(const RecordedFile& call) {
  const std::string head = head_of(call);
  if (head.size() > kMostHead) throw BadRow("it has too many blocks");
  std::string body = fmt::format("{}\n{}", head.size(), head);
  for (const RecordedTensor& tensor : call.tensors) {
    if (tensor.bytes.size() > kMostRecordedBytes - body.size()) {
      throw BadRow(fmt::format("its inputs have more than {} MiB", kMostRecordedBytes >> 20));
    }
    body.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return fmt::format("{}{} {}\n", kMagic, kVersion, digest_of(body)) + body;
}

bool is_recorded_file(std::string_view bytes) { return bytes.starts_with(kMagic); }

DecodedRecording decode_recorded(std::string_view bytes, const std::string& path) {
  if (!is_recorded_file(bytes)) refuse(path, "not a file of a recorded call");
  std::string_view rest = bytes.substr(kMagic.size());
  const std::string_view version = rest.substr(0, std::min(rest.find(' '), std::size_t{12}));
  if (version != kVersion) {
    refuse(path, fmt::format("version {} of recorded rows; this plumb reads {}",
                             is_word(version) ? version : "?", kVersion));
  }
  if (!rest.starts_with(fmt::format("{} ", kVersion))) refuse(path, "its first line is damaged");
  rest.remove_prefix(kVersion.size() + 1);
  const std::string digest(rest.substr(0, kDigits));
  if (rest.size() <= kDigits || rest[kDigits] != '\n') refuse(path, "its first line is damaged");
  rest.remove_prefix(kDigits + 1);
  if (digest_of(rest) != digest) {
    refuse(path, "damaged, cut or edited: its bytes do not have the digest of its first line");
  }
  std::size_t head = 0;
  const char* const end = rest.data() + std::min(rest.size(), kDigits);
  const auto [stop, error] = std::from_chars(rest.data(), end, head);
  if (error != std::errc() || stop == end || *stop != '\n' || head > kMostHead) {
    refuse(path, "its second line is not the length of its head");
  }
  rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()) + 1);
  if (head > rest.size()) refuse(path, "its head is not all there");
  const Json table = parse_head(rest.substr(0, head), path);
  if (!table.is_object()) refuse(path, "its head is not an object");
  DecodedRecording decoded{.call = {}, .digest = digest, .case_file = {}};
  decoded.call.op = text_at(table, "op", path);
  decoded.call.why = text_at(table, "why", path);
  if (text_at(table, "fill", path) != kRecorded) refuse(path, "its fill is not \"recorded\"");
  read_tensors(table, rest.substr(head), path, decoded.call);
  read_reals(table, path, decoded.call);
  decoded.case_file = case_file_of(table, decoded.call, digest, path);
  return decoded;
}

std::vector<std::int64_t> parse_kept_rows(std::string_view text) {
  const auto bad = [&] {
    throw BadRow(
        fmt::format("{} is ascending numbers, as 3,17,20-22, not \"{}\"", kKeepRows, text));
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  std::vector<std::int64_t> rows;
  for (std::string_view rest = text;;) {
    std::int64_t first = 0;
    const char* const end = rest.data() + rest.size();
    auto [stop, error] = std::from_chars(rest.data(), end, first);
    std::int64_t last = first;
    if (error == std::errc() && stop != end && *stop == '-') {
      std::tie(stop, error) = [&] {
        const auto read = std::from_chars(stop + 1, end, last);
        return std::pair(read.ptr, read.ec);
      }();
    }
    const std::int64_t before = rows.empty() ? -1 : rows.back();
    if (error != std::errc() || first <= before || last < first || last >= kMost) bad();
    for (std::int64_t row = first; row <= last; ++row) rows.push_back(row);
    if (stop == end) return rows;
    if (*stop != ',') bad();
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()) + 1);
  }
}

}  // namespace plumb::cases
