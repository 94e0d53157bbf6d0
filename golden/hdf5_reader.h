// SPDX-License-Identifier: Apache-2.0
//
// Reads attributes, groups and data sets of an untrusted HDF5 file. Everything is compared with the
// expected type and size before it is read. Throws GoldenError with the place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "golden/model.h"
#include "hdf5/handle.h"

namespace plumb::golden {

using hdf5::Handle;
using hdf5::require_success;

// A group or data set, with its path for messages.
struct Hdf5Node {
  Handle handle;
  std::string where;
};

// Names of a group's members, ascending. Only hard links are allowed.
std::vector<std::string> children(const Hdf5Node& group, std::size_t most);
std::vector<std::string> attribute_names(const Hdf5Node& node, std::size_t most);
// Throws unless these are all names, in any order.
void require_children(const Hdf5Node& group, const std::vector<std::string>& names);
void require_attributes(const Hdf5Node& node, const std::vector<std::string>& names);

Hdf5Node open_group(const Hdf5Node& parent, const std::string& name);
std::string read_text(const Hdf5Node& node, const std::string& name);
std::int64_t read_number(const Hdf5Node& node, const std::string& name);
std::vector<std::int64_t> read_numbers(const Hdf5Node& node, const std::string& name);
// Reads exactly values.size() doubles.
void read_reals(const Hdf5Node& node, const std::string& name, std::span<double> values);

// All elements of a data set. It must have exactly this type and extent, one chunk inside the file,
// no filters other than plumb's, and the digest that it names.
std::vector<std::byte> read_data(const Hdf5Node& group, const std::string& name, hid_t type,
                                 const std::vector<hsize_t>& extent);

// Reads an open file; decode() calls it. Needs an Hdf5Session.
GoldenFile read_open_file(hid_t file);

}  // namespace plumb::golden
