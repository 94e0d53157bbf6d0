// SPDX-License-Identifier: Apache-2.0
//
// Attributes, groups and data sets of a file that may hold anything: what is asked for is compared
// with what is there before it is read. Throws GoldenError that says where.
#pragma once

#include <string>
#include <vector>

#include "golden/model.h"
#include "hdf5/handle.h"

namespace plumb::golden {

using hdf5::Handle;
using hdf5::require_success;

// A group or data set, and its place for messages.
struct Hdf5Node {
  Handle handle;
  std::string where;
};

// Names of what is in a group, ascending: groups and data sets by hard links, no link to outside.
std::vector<std::string> children(const Hdf5Node& group, std::size_t most);
std::vector<std::string> attribute_names(const Hdf5Node& node, std::size_t most);
// Refuses anything but these, in any order.
void require_children(const Hdf5Node& group, const std::vector<std::string>& names);
void require_attributes(const Hdf5Node& node, const std::vector<std::string>& names);

Hdf5Node open_group(const Hdf5Node& parent, const std::string& name);
std::string read_text(const Hdf5Node& node, const std::string& name);
std::int64_t read_number(const Hdf5Node& node, const std::string& name);
std::vector<std::int64_t> read_numbers(const Hdf5Node& node, const std::string& name);

// All elements of a data set that has exactly this type and extent, is stored in one piece inside
// the file with no other filters than plumb's, and has the digest that it names.
std::vector<std::byte> read_data(const Hdf5Node& group, const std::string& name, hid_t type,
                                 const std::vector<hsize_t>& extent);

// The whole of an open file: decode() without the bytes. Under an Hdf5Session.
GoldenFile read_open_file(hid_t file);

}  // namespace plumb::golden
