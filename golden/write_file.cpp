// SPDX-License-Identifier: Apache-2.0
//
// encode(): writes objects in a fixed order, without times, each in one chunk.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include "golden/file_system.h"
#include "golden/hdf5_file.h"
#include "golden/hdf5_type.h"
#include "process/temporary_folder.h"

namespace plumb::golden {

namespace {

using hdf5::Handle;
using hdf5::Hdf5Session;
using hdf5::require_success;

using Extent = std::vector<hsize_t>;

Handle space_of(const Extent& extent) {
  if (extent.empty()) return {H5Screate(H5S_SCALAR), H5Sclose, "a space"};
  return {H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose,
          "a space"};
}

// Strings of fixed length: readers in other languages need not support heaps of variable-length
// strings.
Handle text_type(std::size_t length) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "a type");
  require_success(H5Tset_size(type, std::max<std::size_t>(length, 1)), "a type");
  require_success(H5Tset_cset(type, H5T_CSET_UTF8), "a type");
  require_success(H5Tset_strpad(type, H5T_STR_NULLPAD), "a type");
  return type;
}

void put(hid_t object, const std::string& name, hid_t type, hid_t space, const void* value) {
  const Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, name);
  require_success(H5Awrite(attribute, type, value), name);
}

void put_text(hid_t object, const std::string& name, const std::string& text) {
  put(object, name, text_type(text.size()), space_of({}), text.c_str());
}

void put_number(hid_t object, const std::string& name, std::int64_t value) {
  put(object, name, H5T_STD_I64LE, space_of({}), &value);
}

// The shape of a scalar is an attribute without elements.
void put_numbers(hid_t object, const std::string& name, const std::vector<std::int64_t>& values) {
  const std::int64_t none = 0;
  put(object, name, H5T_STD_I64LE, space_of({values.size()}),
      values.empty() ? &none : values.data());
}

template <std::size_t count>
void put_reals(hid_t object, const std::string& name, const std::array<double, count>& values) {
  put(object, name, H5T_IEEE_F64LE, space_of({count}), values.data());
}

// Stores all links and attributes in the object's header instead of heaps or trees.
void keep_plain(hid_t properties) {
  require_success(H5Pset_obj_track_times(properties, false), "object times");
  require_success(H5Pset_attr_phase_change(properties, Limits::history, 0), "attributes");
  require_success(H5Pset_link_phase_change(properties, Limits::cases, 0), "links");
}

Handle make_group(hid_t parent, const std::string& name) {
  const Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "a property list");
  keep_plain(properties);
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, properties, H5P_DEFAULT), H5Gclose, name};
}

void put_data(hid_t group, const std::string& name, hid_t type, const Extent& extent,
              std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  constexpr unsigned kSmallest = 9;
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "a property list");
  require_success(H5Pset_obj_track_times(properties, false), "object times");
  require_success(H5Pset_chunk(properties, static_cast<int>(extent.size()), extent.data()), name);
  require_success(H5Pset_shuffle(properties), name);
  require_success(H5Pset_deflate(properties, kSmallest), name);
  require_success(H5Pset_fletcher32(properties), name);
  const Handle data(
      H5Dcreate2(group, name.c_str(), type, space_of(extent), H5P_DEFAULT, properties, H5P_DEFAULT),
      H5Dclose, name);
  require_success(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), name);
  put_text(data, "xxh3_128", digest_of(bytes));
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Writes attributes, because the overhead of a data set exceeds these numbers.
void put_sketch(hid_t group, const TensorSketch& sketch) {
  put_reals(group, "statistics", numbers_of(sketch.statistics));
  put_reals(group, "projections", sketch.projections);
}

void put_tensor(hid_t outputs, const TensorGolden& tensor) {
  const Handle group = make_group(outputs, tensor.name);
  put_text(group, "dtype", std::string(cases::name_of(tensor.dtype)));
  put_text(group, "format", tensor.format);
  put_text(group, "scale_layout", tensor.scale_layout);
  put_numbers(group, "shape", tensor.shape);
  put_numbers(group, "strides", tensor.strides);
  put_text(group, "xxh3_128", tensor.digest);
  if (tensor.sketch) put_sketch(group, *tensor.sketch);
  const Handle type = type_of(tensor.dtype);
  if (!tensor.is_sampled()) {
    Extent extent(tensor.shape.begin(), tensor.shape.end());
    if (extent.empty()) extent = {1};
    put_data(group, "values", type, extent, tensor.values);
    return;
  }
  const auto columns = static_cast<hsize_t>(tensor.columns());
  put_data(group, "row_checksums", H5T_STD_U64LE, {tensor.row_checksums.size()},
           bytes_of(tensor.row_checksums));
  put_data(group, "sampled_rows", H5T_STD_I64LE, {tensor.sampled_rows.size()},
           bytes_of(tensor.sampled_rows));
  put_data(group, "sampled_values", type, {tensor.sampled_rows.size(), columns}, tensor.values);
}

void put_case(hid_t rows, const CaseGolden& golden) {
  const std::size_t first = golden.id.find('/'), last = golden.id.rfind('/');
  const std::string row = golden.id.substr(first + 1, last - first - 1);
  const bool there = H5Lexists(rows, row.c_str(), H5P_DEFAULT) > 0;
  const Handle parent = there ? Handle(H5Gopen2(rows, row.c_str(), H5P_DEFAULT), H5Gclose, row)
                              : make_group(rows, row);
  const Handle group = make_group(parent, golden.id.substr(last + 1));
  for (const auto& [name, text] : golden.provenance) put_text(group, name, text);
  const Handle inputs = make_group(group, "inputs");
  for (const auto& [name, digest] : golden.inputs) put_text(inputs, name, digest);
  const Handle outputs = make_group(group, "outputs");
  std::string order;
  for (const TensorGolden& tensor : golden.outputs) {
    order += (order.empty() ? "" : " ") + tensor.name;
    put_tensor(outputs, tensor);
  }
  put_text(outputs, "order", order);
}

void put_root(hid_t root, const GoldenFile& file) {
  put_number(root, "schema", schema_of(file));
  put_text(root, "platform", file.platform);
  put_text(root, "op", file.op);
  put_number(root, "simulated", file.simulated);
  put_text(root, "results", results_digest(file));
  const Handle history = make_group(root, "history");
  for (std::size_t i = 0; i < file.history.size(); ++i) {
    put_text(history, fmt::format("{:04}", i), file.history[i]);
  }
}

void write_to(const std::string& path, const GoldenFile& file) {
  const Hdf5Session session;
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "a property list");
  keep_plain(creation);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "a property list");
  require_success(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), "versions");
  const Handle hdf5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose, path);
  const Handle root(H5Gopen2(hdf5, "/", H5P_DEFAULT), H5Gclose, "/");
  put_root(root, file);
  const Handle rows = make_group(root, file.op);
  for (const CaseGolden& golden : file.cases) put_case(rows, golden);
}

}  // namespace

// Written to a temporary file: the memory image that HDF5 1.10 returns for an open file has a
// superblock with a wrong checksum.
std::vector<std::byte> encode(const GoldenFile& file) {
  validate(file);
  std::optional<process::TemporaryFolder> folder;
  try {
    folder.emplace("plumb-golden");
  } catch (const std::system_error& error) {
    throw GoldenError(error.what());
  }
  const std::string path = (folder->path() / "golden.h5").string();
  write_to(path, file);
  auto bytes = FileSystem().read(path, Limits::file_bytes);
  if (!bytes) throw GoldenError(path + ": is gone");
  return std::move(*bytes);
}

}  // namespace plumb::golden
