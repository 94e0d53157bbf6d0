// SPDX-License-Identifier: Apache-2.0
//
// A golden file with every kind of data set, and tampered variants of it.
#pragma once

#include <hdf5.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "golden/hdf5_file.h"
#include "golden/provenance.h"

namespace plumb::golden {

inline TensorGolden tensor(std::string name, cases::Dtype dtype, std::vector<std::int64_t> shape) {
  TensorGolden made{.name = std::move(name), .dtype = dtype, .shape = shape, .strides = shape};
  made.values.resize(static_cast<std::size_t>(made.rows()) * made.row_bytes());
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    made.values[i] = static_cast<std::byte>(i * 7 + shape.size());
  }
  made.digest = digest_of(made.values);
  return made;
}

inline TensorSketch example_sketch() {
  TensorSketch sketch{.statistics = {.non_finite = 1,
                                     .mean = 0.5,
                                     .norm = 3,
                                     .least = -2,
                                     .greatest = 4,
                                     .least_at = 0,
                                     .greatest_at = 71}};
  for (std::size_t i = 0; i < sketch.projections.size(); ++i) {
    sketch.projections[i] = static_cast<double>(i) / 7;
  }
  return sketch;
}

// Reduces a tensor to two stored rows.
inline TensorGolden sampled(TensorGolden whole) {
  TensorGolden part = std::move(whole);
  const std::vector<std::byte> all = std::move(part.values);
  const std::size_t row_bytes = part.row_bytes();
  for (std::int64_t row = 0; row < part.rows(); ++row) {
    part.row_checksums.push_back(
        XXH3_64bits(all.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes));
  }
  part.sampled_rows = {0, part.rows() - 1};
  part.sketch = example_sketch();
  part.values.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(row_bytes));
  part.values.insert(part.values.end(), all.end() - static_cast<std::ptrdiff_t>(row_bytes),
                     all.end());
  return part;
}

inline CaseGolden example_case(const std::string& id) {
  CaseGolden golden;
  golden.id = id;
  for (const std::string_view name : kProvenanceNames)
    golden.provenance[std::string(name)] = "some";
  golden.inputs = {{"x", digest_of(std::string_view("x"))}};
  using cases::Dtype;
  golden.outputs = {
      tensor("bytes", Dtype::u8, {4, 16}),    tensor("indices", Dtype::i32, {3, 5}),
      tensor("slots", Dtype::i64, {7}),       tensor("out", Dtype::bf16, {2, 3, 8}),
      tensor("weights", Dtype::f32, {4, 2}),  tensor("count", Dtype::i32, {}),
      tensor("nothing", Dtype::f32, {0, 64}), sampled(tensor("many", Dtype::bf16, {9, 8}))};
  golden.outputs[0].format = "e4m3fn";
  golden.outputs[0].scale_layout = "scales, one of 16 codes";
  return golden;
}

inline GoldenFile example_file() {
  GoldenFile file{.platform = "sim-sm90", .op = "rms_norm", .simulated = true};
  file.history = {"first", "second"};
  file.cases = {example_case("rms_norm/a/eager"), example_case("rms_norm/b/eager")};
  return file;
}

// The example without sketches, as earlier versions wrote it.
inline GoldenFile example_file_of_schema_1() {
  GoldenFile file = example_file();
  for (CaseGolden& golden : file.cases) {
    for (TensorGolden& output : golden.outputs) output.sketch.reset();
  }
  return file;
}

// The example with one change made by HDF5 itself, so that the file is well-formed.
inline std::vector<std::byte> tampered(const std::function<void(hid_t file)>& change) {
  namespace fs = std::filesystem;
  const fs::path path =
      fs::temp_directory_path() / ("tampered-" + std::to_string(getpid()) + ".h5");
  const std::vector<std::byte> bytes = encode(example_file());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  change(file);
  H5Fclose(file);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  fs::remove(path);
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

}  // namespace plumb::golden
