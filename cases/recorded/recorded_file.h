// SPDX-License-Identifier: Apache-2.0
//
// One recorded call as a file (docs/traces.md, "A call as a case"): a line with a digest, a head in
// JSON, and the bytes of the inputs. The reader treats all content as hostile.
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

// One input. `bytes` are dense and in row-major order.
struct RecordedTensor {
  std::string name;  // name in the op's table: "x", "k_cache_before"
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  // If set: indices of the first dimension that are stored, ascending. All other elements are zero.
  std::optional<std::vector<std::int64_t>> blocks;
  std::span<const std::byte> bytes;

  std::size_t dense_bytes() const;   // size of the whole shape in bytes
  std::size_t stored_bytes() const;  // size of `bytes`
};

struct RecordedFile {
  std::string op, why;
  Row row;  // integers, words and reals are written; a decoded file sets only the reals
  std::vector<RecordedTensor> tensors;
};

// Word parameter of a recorded row. Its value is the digest of the row's file.
inline constexpr std::string_view kRecorded = "recorded";
// Word parameter of a recorded row. Its value says which rows of the call are kept, as "3,17,20-22"
// in the recording's numbering.
inline constexpr std::string_view kKeepRows = "keep_rows";

// Size limit in bytes, for a whole file and for each tensor.
inline constexpr std::size_t kMostRecordedBytes = std::size_t{1} << 30;

// Throws BadRow if the call is too large.
std::string encode_recorded(const RecordedFile& call);

// True if the bytes begin with the magic line of a recorded file.
bool is_recorded_file(std::string_view bytes);

struct DecodedRecording {
  RecordedFile call;  // tensors point into the decoded bytes
  std::string digest;
  std::string case_file;  // the row, as the text of a case file
};
// Throws BadRow (one line with `path`) if the file is damaged, truncated, edited, or not a recorded
// file.
DecodedRecording decode_recorded(std::string_view bytes, const std::string& path);

// Name of a recorded row, from the file's digest: "recorded_0123456789ab".
std::string recorded_row_name(std::string_view digest);

// Parses "3,17,20-22", which must ascend. Throws BadRow.
std::vector<std::int64_t> parse_kept_rows(std::string_view text);

}  // namespace plumb::cases
