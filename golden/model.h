// SPDX-License-Identifier: Apache-2.0
//
// What a golden says, apart from how HDF5 holds it: of each case the digests of its inputs, its
// outputs and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tensors/tensor.h"
#include "hdf5/digest.h"
#include "hdf5/handle.h"

namespace plumb::golden {

using GoldenError = hdf5::BadFile;

inline constexpr std::int64_t kSchema = 1;

using hdf5::digest_of;

// An output: its promised elements row after row without gaps, zeros for the others.
struct TensorGolden {
  std::string name;
  cases::Dtype dtype = cases::Dtype::f32;
  // What bytes stand for: "e4m3fn", "e4m3fnuz", "ue8m0", "e2m1" (two in a byte), a cache's layout;
  // "number" for everything whose dtype says it all.
  std::string format = "number";
  std::string scale_layout = "none";         // where the scales of these codes are
  std::vector<std::int64_t> shape, strides;  // as the kernel wrote it, in elements
  std::string digest;                        // of all elements, as above
  std::vector<std::uint64_t> row_checksums;  // XXH3-64; empty where `values` has everything
  std::vector<std::int64_t> sampled_rows;    // ascending; empty where `values` has everything
  std::vector<std::byte> values;             // of all rows, or of the sampled ones

  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t elements() const;
  std::int64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
  std::size_t row_bytes() const;
  bool is_sampled() const { return !row_checksums.empty(); }
};

// One launch with real values at the captured size.
struct CaseGolden {
  std::string id;
  std::map<std::string, std::string> provenance;  // golden/provenance.h has the names
  std::map<std::string, std::string> inputs;      // digest of the bytes of each
  std::vector<TensorGolden> outputs;              // in the op's order
};

struct GoldenFile {
  std::string platform, op;
  bool simulated = false;
  std::vector<std::string> history;  // a line for every change
  std::vector<CaseGolden> cases;     // by id, ascending

  const CaseGolden* find(std::string_view id) const;
};

// Of the results alone: what does not depend on who computed them when.
std::string results_digest(const CaseGolden& golden);
std::string results_digest(const GoldenFile& file);

// Throws GoldenError, "where: what", unless there could be a tensor of this shape.
void validate_shape(const TensorGolden& tensor, std::string_view where);
// Throws GoldenError unless sizes, digests and names fit each other: whatever a file says, what
// passes here can be used without another look.
void validate(const GoldenFile& file);

// Largest of everything that a file may hold. The store's own are far below.
struct Limits {
  static constexpr std::size_t file_bytes = std::size_t{64} << 20;
  static constexpr std::size_t values_bytes = std::size_t{16} << 20;  // of one data set
  static constexpr std::size_t text_bytes = 64 << 10;
  static constexpr std::size_t cases = 4096, outputs = 64, attributes = 64, history = 4096;
  static constexpr std::size_t rank = 8;
};

}  // namespace plumb::golden
