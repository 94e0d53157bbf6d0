// SPDX-License-Identifier: Apache-2.0
//
// decode(): reads the schema.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

#include "golden/hdf5_file.h"
#include "golden/hdf5_reader.h"
#include "golden/hdf5_type.h"
#include "golden/provenance.h"

namespace plumb::golden {

namespace {

cases::Dtype dtype_of(const std::string& name, const std::string& where) {
  for (const cases::Dtype dtype : {cases::Dtype::u8, cases::Dtype::i32, cases::Dtype::i64,
                                   cases::Dtype::bf16, cases::Dtype::f32}) {
    if (name == cases::name_of(dtype)) return dtype;
  }
  throw GoldenError(fmt::format("{}: no such dtype", where));
}

template <class T>
std::vector<T> read_column(const Hdf5Node& group, const std::string& name, hid_t type,
                           hsize_t rows) {
  const std::vector<std::byte> bytes = read_data(group, name, type, {rows});
  std::vector<T> values(rows);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Sizes come from the attributes. Each is compared with the file before reading; impossible shapes
// have been refused before.
void read_values(const Hdf5Node& group, TensorGolden& tensor) {
  const std::vector<std::string> names = children(group, 3);
  const Handle type = type_of(tensor.dtype);
  if (names.empty()) return;
  if (names == std::vector<std::string>{"values"}) {
    std::vector<hsize_t> extent(tensor.shape.begin(), tensor.shape.end());
    if (extent.empty()) extent = {1};
    tensor.values = read_data(group, "values", type, extent);
    return;
  }
  const auto rows = static_cast<hsize_t>(tensor.rows());
  tensor.row_checksums = read_column<std::uint64_t>(group, "row_checksums", H5T_STD_U64LE, rows);
  if (names.size() == 1) return;
  require_children(group, {"row_checksums", "sampled_rows", "sampled_values"});
  const Hdf5Node sampled{Handle(H5Dopen2(group.handle, "sampled_rows", H5P_DEFAULT), H5Dclose,
                                group.where + "/sampled_rows"),
                         group.where};
  const Handle space(H5Dget_space(sampled.handle), H5Sclose, group.where);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0 || count > static_cast<hssize_t>(rows)) {
    throw GoldenError(group.where + "/sampled_rows: more than there are rows");
  }
  tensor.sampled_rows =
      read_column<std::int64_t>(group, "sampled_rows", H5T_STD_I64LE, static_cast<hsize_t>(count));
  tensor.values = read_data(group, "sampled_values", type,
                            {static_cast<hsize_t>(count), static_cast<hsize_t>(tensor.columns())});
}

TensorSketch read_sketch(const Hdf5Node& group) {
  TensorSketch sketch;
  StatisticNumbers numbers{};
  read_reals(group, "statistics", numbers);
  const std::optional<TensorStatistics> statistics = statistics_of(numbers);
  if (!statistics) throw GoldenError(group.where + "/statistics: a count that is none");
  sketch.statistics = *statistics;
  read_reals(group, "projections", sketch.projections);
  return sketch;
}

TensorGolden read_tensor(const Hdf5Node& outputs, const std::string& name) {
  const Hdf5Node group = open_group(outputs, name);
  const bool sketched = H5Aexists(group.handle, "projections") > 0;
  std::vector<std::string> attributes{"dtype", "format",  "scale_layout",
                                      "shape", "strides", "xxh3_128"};
  if (sketched) attributes.insert(attributes.end(), {"statistics", "projections"});
  require_attributes(group, attributes);
  TensorGolden tensor;
  tensor.name = name;
  tensor.dtype = dtype_of(read_text(group, "dtype"), group.where);
  tensor.format = read_text(group, "format");
  tensor.scale_layout = read_text(group, "scale_layout");
  tensor.shape = read_numbers(group, "shape");
  tensor.strides = read_numbers(group, "strides");
  tensor.digest = read_text(group, "xxh3_128");
  validate_shape(tensor, group.where);
  read_values(group, tensor);
  if (sketched) tensor.sketch = read_sketch(group);
  return tensor;
}

std::vector<TensorGolden> read_outputs(const Hdf5Node& group) {
  const Hdf5Node outputs = open_group(group, "outputs");
  require_attributes(outputs, {"order"});
  std::vector<std::string> order;
  std::istringstream words(read_text(outputs, "order"));
  for (std::string word; words >> word;) order.push_back(word);
  if (order.size() > Limits::outputs) throw GoldenError(outputs.where + ": too many outputs");
  require_children(outputs, order);
  std::vector<TensorGolden> tensors;
  for (const std::string& name : order) tensors.push_back(read_tensor(outputs, name));
  return tensors;
}

std::map<std::string, std::string> read_texts(const Hdf5Node& node) {
  std::map<std::string, std::string> texts;
  for (const std::string& name : attribute_names(node, Limits::attributes)) {
    texts[name] = read_text(node, name);
  }
  return texts;
}

CaseGolden read_case(const Hdf5Node& row, const std::string& scenario, std::string id) {
  const Hdf5Node group = open_group(row, scenario);
  require_children(group, {"inputs", "outputs"});
  CaseGolden golden;
  golden.id = std::move(id);
  golden.provenance = read_texts(group);
  for (const std::string_view name : kProvenanceNames) {
    if (golden.provenance.contains(std::string(name))) continue;
    throw GoldenError(fmt::format("{}: no attribute \"{}\"", group.where, name));
  }
  golden.inputs = read_texts(open_group(group, "inputs"));
  golden.outputs = read_outputs(group);
  return golden;
}

void read_cases(const Hdf5Node& root, GoldenFile& file) {
  const Hdf5Node rows = open_group(root, file.op);
  for (const std::string& row : children(rows, Limits::cases)) {
    const Hdf5Node group = open_group(rows, row);
    for (const std::string& scenario : children(group, Limits::cases)) {
      const std::string id = file.op + "/" + row + "/" + scenario;
      file.cases.push_back(read_case(group, scenario, id));
    }
    if (file.cases.size() > Limits::cases) throw GoldenError(rows.where + ": too many cases");
  }
  std::sort(file.cases.begin(), file.cases.end(),
            [](const CaseGolden& a, const CaseGolden& b) { return a.id < b.id; });
}

void read_history(const Hdf5Node& root, GoldenFile& file) {
  const Hdf5Node history = open_group(root, "history");
  for (const std::string& name : attribute_names(history, Limits::history)) {
    file.history.push_back(read_text(history, name));
  }
}

GoldenFile read_root(const Hdf5Node& root) {
  const std::int64_t schema = read_number(root, "schema");
  if (schema > kSchema) {
    throw GoldenError(fmt::format("{}: schema {}, newer than {}, the newest that this plumb reads",
                                  root.where, schema, kSchema));
  }
  if (schema < 1) throw GoldenError(fmt::format("{}: schema {} never was", root.where, schema));
  require_attributes(root, {"schema", "platform", "op", "simulated", "results"});
  GoldenFile file;
  file.platform = read_text(root, "platform");
  file.op = read_text(root, "op");
  file.simulated = read_number(root, "simulated") != 0;
  require_children(root, {file.op, "history"});
  read_history(root, file);
  read_cases(root, file);
  validate(file);
  if (schema != schema_of(file)) {
    throw GoldenError(fmt::format("{}: schema {}, and contents of schema {}", root.where, schema,
                                  schema_of(file)));
  }
  if (results_digest(file) != read_text(root, "results")) {
    throw GoldenError(root.where + ": its results are not those whose digest it names");
  }
  return file;
}

Handle open_image(std::span<const std::byte> bytes) {
  const Handle access = hdf5::memory_access();
  require_success(H5Pset_file_image(access, const_cast<std::byte*>(bytes.data()), bytes.size()),
                  "memory");
  // A path that does not exist: HDF5 opens a file of this name even though it has an image.
  return {H5Fopen("/dev/null/golden", H5F_ACC_RDONLY, access), H5Fclose, "not an HDF5 file"};
}

}  // namespace

GoldenFile read_open_file(hid_t file) {
  return read_root({Handle(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "/"), ""});
}

GoldenFile decode(std::span<const std::byte> bytes, std::string_view name) {
  try {
    if (bytes.empty() || bytes.size() > Limits::file_bytes) {
      throw GoldenError(bytes.empty() ? "empty" : "too large for a golden");
    }
    const hdf5::Hdf5Session session;
    return read_open_file(open_image(bytes));
  } catch (const GoldenError& error) {
    const std::string_view what = error.what();
    throw GoldenError(fmt::format("{}: {}", name, what.starts_with(": ") ? what.substr(2) : what));
  }
}

}  // namespace plumb::golden
