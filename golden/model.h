// SPDX-License-Identifier: Apache-2.0
//
// Contents of goldens, independent of HDF5: per case the digests of its inputs, its outputs and
// their provenance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tensors/tensor.h"
#include "golden/sketch.h"
#include "hdf5/digest.h"
#include "hdf5/handle.h"

namespace plumb::golden {

using GoldenError = hdf5::BadFile;

// The newest schema. A file has schema 2 if one of its tensors has a sketch, else schema 1.
inline constexpr std::int64_t kSchema = 2;

using hdf5::digest_of;

// Format of the output of a decode step's golden, [steps, calls] i64: digests of what each call
// wrote, 0 behind the last call of a step.
inline constexpr std::string_view kCallDigests = "call digests";

// An output of a launch: the elements that the op promises, packed row by row, with zeros in place
// of the others.
struct TensorGolden {
  std::string name;
  cases::Dtype dtype = cases::Dtype::f32;
  // Meaning of the bytes: "e4m3fn", "e4m3fnuz", "ue8m0", "e2m1" (two per byte), or a cache's
  // layout. "number" if the dtype says everything.
  std::string format = "number";
  std::string scale_layout = "none";         // layout of the scales of these codes
  std::vector<std::int64_t> shape, strides;  // strides in elements, as the kernel wrote it
  std::string digest;                        // of all elements in packed order
  std::vector<std::uint64_t> row_checksums;  // XXH3-64; empty if `values` has all rows
  std::vector<std::int64_t> sampled_rows;    // ascending; empty if `values` has all rows
  std::vector<std::byte> values;             // all rows, or the sampled ones
  // Only of a sampled tensor; files of schema 1 have none.
  std::optional<TensorSketch> sketch = {};

  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t elements() const;
  std::int64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
  std::size_t row_bytes() const;
  bool is_sampled() const { return !row_checksums.empty(); }
  // Whether `values` has all rows.
  bool is_whole() const { return sampled_rows.size() == row_checksums.size(); }
};

// One launch with real values at the captured size.
struct CaseGolden {
  std::string id;
  std::map<std::string, std::string> provenance;  // names: golden/provenance.h
  std::map<std::string, std::string> inputs;      // digests of the inputs' bytes, by name
  std::vector<TensorGolden> outputs;              // in the op's order
};

struct GoldenFile {
  std::string platform, op;
  bool simulated = false;
  std::vector<std::string> history;  // one line per change
  std::vector<CaseGolden> cases;     // ascending by id

  const CaseGolden* find(std::string_view id) const;
};
std::int64_t schema_of(const GoldenFile& file);

// Digest of the results only, which does not depend on provenance.
std::string results_digest(const CaseGolden& golden);
std::string results_digest(const GoldenFile& file);

// Throws GoldenError, "where: what", unless the shape is possible.
void validate_shape(const TensorGolden& tensor, std::string_view where);
// Throws GoldenError unless sizes, digests and names are consistent. A file that passes can be used
// without further checks.
void validate(const GoldenFile& file);

// Limits of the contents of a file. The repository's own goldens are far smaller.
struct Limits {
  static constexpr std::size_t file_bytes = std::size_t{64} << 20;
  static constexpr std::size_t values_bytes = std::size_t{16} << 20;  // of one data set
  static constexpr std::size_t text_bytes = 64 << 10;
  static constexpr std::size_t cases = 4096, outputs = 64, attributes = 64, history = 4096;
  static constexpr std::size_t rank = 8;
};

}  // namespace plumb::golden
