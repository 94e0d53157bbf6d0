// SPDX-License-Identifier: Apache-2.0
//
// One recorded call as a file (docs/traces.md, "A call as a case"): a line with a digest, a
// head in JSON, and the bytes of the inputs. Everything that is read may be hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

// One input. Its bytes are dense and in row-major order.
struct RecordedTensor {
  std::string name;  // of the op's table: "x", "k_cache_before"
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  // Only these of the first dimension have bytes, ascending; the others are zero.
  std::optional<std::vector<std::int64_t>> blocks;
  std::span<const std::byte> bytes;

  std::size_t dense_bytes() const;   // of the whole shape
  std::size_t stored_bytes() const;  // of `bytes`
};

struct RecordedFile {
  std::string op, why;
  Row row;  // integers, words and reals alone count; of a decoded file the reals
  std::vector<RecordedTensor> tensors;
};

// Rows of such files have this word: the digest of the file.
inline constexpr std::string_view kRecorded = "recorded";
// Of a recorded row: which of its rows are kept, "3,17,20-22", as they are numbered in the
// recording.
inline constexpr std::string_view kKeepRows = "keep_rows";

// Bytes that a file of a recorded call, or one of its tensors, has at most.
inline constexpr std::size_t kMostRecordedBytes = std::size_t{1} << 30;

// Throws BadRow for a call that is too large.
std::string encode_recorded(const RecordedFile& call);

// Does it begin as such a file does?
bool is_recorded_file(std::string_view bytes);

struct DecodedRecording {
  RecordedFile call;  // its tensors point into the bytes
  std::string digest;
  std::string case_file;  // the row as the text of a case file
};
// Throws BadRow, one line with `path`, for a file that is damaged, cut, edited, or never was one.
DecodedRecording decode_recorded(std::string_view bytes, const std::string& path);

// "recorded_0123456789ab"
std::string recorded_row_name(std::string_view digest);

// "3,17,20-22", ascending. Throws BadRow.
std::vector<std::int64_t> parse_kept_rows(std::string_view text);

}  // namespace plumb::cases
