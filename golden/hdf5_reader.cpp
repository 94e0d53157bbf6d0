// SPDX-License-Identifier: Apache-2.0
#include "golden/hdf5_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::golden {

namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view what) {
  throw GoldenError(fmt::format("{}: {}", where, what));
}

std::string path_of(const Hdf5Node& node, const std::string& name) {
  return node.where + "/" + name;
}

// A name for a message, replaced if it is long or has spaces, control or non-ASCII characters.
std::string shown(const std::string& name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  return plain && name.size() <= 64 ? "\"" + name + "\"" : "of another name";
}

struct Links {
  std::size_t most;
  std::vector<std::string> names;
  std::string trouble;  // exceptions must not pass through HDF5
};

herr_t add_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  auto& links = *static_cast<Links*>(data);
  if (info->type != H5L_TYPE_HARD) {
    links.trouble = "a link " + shown(name) + " that leads out of the file";
  } else if (links.names.size() == links.most) {
    links.trouble = "too many objects";
  }
  if (!links.trouble.empty()) return -1;
  links.names.emplace_back(name);
  return 0;
}

herr_t add_attribute(hid_t, const char* name, const H5A_info_t*, void* data) {
  auto& links = *static_cast<Links*>(data);
  if (links.names.size() == links.most) {
    links.trouble = "too many attributes";
    return -1;
  }
  links.names.emplace_back(name);
  return 0;
}

std::vector<std::string> names_in(const Hdf5Node& node, Links links, herr_t result) {
  if (!links.trouble.empty()) refuse(node.where, links.trouble);
  if (result < 0) refuse(node.where, "cannot be listed");
  return std::move(links.names);
}

void require_names(const Hdf5Node& node, std::vector<std::string> got,
                   std::vector<std::string> wanted, std::string_view kind) {
  std::sort(got.begin(), got.end());
  std::sort(wanted.begin(), wanted.end());
  for (const std::string& name : wanted) {
    if (!std::binary_search(got.begin(), got.end(), name)) {
      refuse(node.where, fmt::format("no {} \"{}\"", kind, name));
    }
  }
  for (const std::string& name : got) {
    if (!std::binary_search(wanted.begin(), wanted.end(), name)) {
      refuse(node.where, fmt::format("unknown {} {}", kind, shown(name)));
    }
  }
}

Handle open_attribute(const Hdf5Node& node, const std::string& name) {
  if (H5Aexists(node.handle, name.c_str()) <= 0) {
    refuse(node.where, fmt::format("no attribute {}", shown(name)));
  }
  return {H5Aopen(node.handle, name.c_str(), H5P_DEFAULT), H5Aclose, path_of(node, name)};
}

// Sizes of a simple or scalar data space, by dimension.
std::vector<hsize_t> extent_of(hid_t space, const std::string& where) {
  if (H5Sget_simple_extent_type(space) == H5S_SCALAR) return {};
  const int rank = H5Sget_simple_extent_ndims(space);
  if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank < 1 ||
      rank > static_cast<int>(Limits::rank)) {
    refuse(where, "of a shape that plumb does not write");
  }
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  return extent;
}

void require_type(hid_t got, hid_t wanted, const std::string& where) {
  if (H5Tequal(got, wanted) <= 0) refuse(where, "of another type than it has to be");
}

std::vector<std::int64_t> read_integers(const Hdf5Node& node, const std::string& name,
                                        bool scalar) {
  const std::string where = path_of(node, name);
  const Handle attribute = open_attribute(node, name);
  require_type(Handle(H5Aget_type(attribute), H5Tclose, where), H5T_STD_I64LE, where);
  const std::vector<hsize_t> extent =
      extent_of(Handle(H5Aget_space(attribute), H5Sclose, where), where);
  if (extent.size() != (scalar ? 0 : 1) || (!scalar && extent[0] > Limits::rank)) {
    refuse(where, "not as many numbers as there have to be");
  }
  std::vector<std::int64_t> values(scalar ? 1 : extent[0]);
  if (values.empty()) return values;
  require_success(H5Aread(attribute, H5T_NATIVE_INT64, values.data()), where);
  return values;
}

void require_filters(hid_t properties, const std::string& where) {
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t no_values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                                               &no_values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE &&
        filter != H5Z_FILTER_FLETCHER32) {
      refuse(where, "a filter that plumb does not use");
    }
  }
  if (count > 3) refuse(where, "more filters than plumb uses");
}

// Requires a single chunk that is stored in this file.
void require_layout(hid_t data, const std::vector<hsize_t>& extent, const std::string& where) {
  const Handle properties(H5Dget_create_plist(data), H5Pclose, where);
  if (H5Pget_layout(properties) != H5D_CHUNKED) refuse(where, "not stored in a chunk");
  std::vector<hsize_t> chunk(extent.size());
  const int rank = H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
  if (rank != static_cast<int>(extent.size()) || chunk != extent) {
    refuse(where, "not stored in one chunk");
  }
  require_filters(properties, where);
}

std::size_t bytes_of(const std::vector<hsize_t>& extent, hid_t type, const std::string& where) {
  std::size_t bytes = H5Tget_size(type);
  for (const hsize_t size : extent) {
    if (size != 0 && bytes > Limits::values_bytes / size) refuse(where, "too large");
    bytes *= size;
  }
  return bytes;
}

}  // namespace

std::vector<std::string> children(const Hdf5Node& group, std::size_t most) {
  Links links{most, {}, {}};
  const herr_t result =
      H5Literate(group.handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_link, &links);
  return names_in(group, std::move(links), result);
}

std::vector<std::string> attribute_names(const Hdf5Node& node, std::size_t most) {
  Links links{most, {}, {}};
  const herr_t result =
      H5Aiterate2(node.handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, &links);
  return names_in(node, std::move(links), result);
}

void require_children(const Hdf5Node& group, const std::vector<std::string>& names) {
  require_names(group, children(group, Limits::cases), names, "object");
}

void require_attributes(const Hdf5Node& node, const std::vector<std::string>& names) {
  require_names(node, attribute_names(node, Limits::history), names, "attribute");
}

Hdf5Node open_group(const Hdf5Node& parent, const std::string& name) {
  const std::string where = path_of(parent, name);
  const Handle object(H5Oopen(parent.handle, name.c_str(), H5P_DEFAULT), H5Oclose, where);
  if (H5Iget_type(object) != H5I_GROUP) refuse(where, "not a group");
  return {Handle(H5Gopen2(parent.handle, name.c_str(), H5P_DEFAULT), H5Gclose, where), where};
}

std::string read_text(const Hdf5Node& node, const std::string& name) {
  const std::string where = path_of(node, name);
  const Handle attribute = open_attribute(node, name);
  const Handle type(H5Aget_type(attribute), H5Tclose, where);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) {
    refuse(where, "not a text of fixed length");
  }
  if (!extent_of(Handle(H5Aget_space(attribute), H5Sclose, where), where).empty()) {
    refuse(where, "more than one text");
  }
  const std::size_t size = H5Tget_size(type);
  if (size > Limits::text_bytes) refuse(where, "too long");
  std::string text(size, '\0');
  require_success(H5Aread(attribute, type, text.data()), where);
  return text.substr(0, text.find('\0'));
}

std::int64_t read_number(const Hdf5Node& node, const std::string& name) {
  return read_integers(node, name, true).front();
}

std::vector<std::int64_t> read_numbers(const Hdf5Node& node, const std::string& name) {
  return read_integers(node, name, false);
}

void read_reals(const Hdf5Node& node, const std::string& name, std::span<double> values) {
  const std::string where = path_of(node, name);
  const Handle attribute = open_attribute(node, name);
  require_type(Handle(H5Aget_type(attribute), H5Tclose, where), H5T_IEEE_F64LE, where);
  const std::vector<hsize_t> extent =
      extent_of(Handle(H5Aget_space(attribute), H5Sclose, where), where);
  if (extent != std::vector<hsize_t>{values.size()}) {
    refuse(where, "not as many numbers as there have to be");
  }
  require_success(H5Aread(attribute, H5T_NATIVE_DOUBLE, values.data()), where);
}

std::vector<std::byte> read_data(const Hdf5Node& group, const std::string& name, hid_t type,
                                 const std::vector<hsize_t>& extent) {
  const std::string where = path_of(group, name);
  const Handle object(H5Oopen(group.handle, name.c_str(), H5P_DEFAULT), H5Oclose, where);
  if (H5Iget_type(object) != H5I_DATASET) refuse(where, "not a data set");
  const Hdf5Node data{Handle(H5Dopen2(group.handle, name.c_str(), H5P_DEFAULT), H5Dclose, where),
                      where};
  require_type(Handle(H5Dget_type(data.handle), H5Tclose, where), type, where);
  if (extent_of(Handle(H5Dget_space(data.handle), H5Sclose, where), where) != extent) {
    refuse(where, "not of the shape that it has to have");
  }
  std::vector<std::byte> bytes(bytes_of(extent, type, where));
  require_layout(data.handle, extent, where);
  require_attributes(data, {"xxh3_128"});
  if (H5Dread(data.handle, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    refuse(where, "its bytes are damaged");
  }
  if (digest_of(bytes) != read_text(data, "xxh3_128")) refuse(where, "its digest is another one");
  return bytes;
}

}  // namespace plumb::golden
