// SPDX-License-Identifier: Apache-2.0
//
// Checks an op table against its C struct. Also the memory for such structs (OpParams).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "cases/tables/op_table.h"

namespace plumb::cases {

namespace {

// Byte range of a member.
struct MemberRange {
  std::string name;
  std::size_t begin = 0, size = 0;
};
using Ranges = std::vector<MemberRange>;

std::size_t aligned(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// Throws if members overlap, or if a gap between two members is larger than alignment padding.
void check_covered(Ranges ranges, std::size_t size, bool says_its_size) {
  if (says_its_size) ranges.push_back({"struct_size", 0, sizeof(std::int64_t)});
  std::sort(ranges.begin(), ranges.end(),
            [](const MemberRange& a, const MemberRange& b) { return a.begin < b.begin; });
  ranges.push_back({"the end", size, sizeof(void*)});
  std::size_t end = 0;
  std::string last = "the start";
  for (const MemberRange& range : ranges) {
    if (range.begin < end) {
      throw std::logic_error(fmt::format("{} and {} are one member", last, range.name));
    }
    if (range.begin != aligned(end, range.size)) {
      throw std::logic_error(
          fmt::format("no line for the member between {} and {}", last, range.name));
    }
    end = range.begin + range.size;
    last = range.name;
  }
}

void check_shape(const TableTensor& tensor) {
  if (tensor.shape.empty()) throw std::logic_error(tensor.name + " has no shape");
  if (tensor.strides.empty() || tensor.strides.size() == tensor.shape.size()) return;
  throw std::logic_error(fmt::format("{}: {} strides for {} dimensions", tensor.name,
                                     tensor.strides.size(), tensor.shape.size()));
}

// True for two forms of one tensor, of which conditions choose one.
bool is_other_form(const TableTensor& a, const TableTensor& b) {
  return a.name == b.name && a.member.name == b.member.name && a.when && b.when;
}

}  // namespace

void OpTable::check() const {
  std::map<std::optional<std::size_t>, Ranges> structs;
  std::map<std::string, const TableTensor*> tensors;
  const auto add = [&](const StructMember& member) {
    structs[member.through].push_back({member.name, member.offset, size_of(member.type)});
  };
  add(stream_);
  if (state_) add(*state_);
  for (const PointedStruct& pointed : pointed_) add(pointed.pointer);
  for (const Field& field : fields_) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) add(scalar->member);
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr) continue;
    check_shape(*tensor);
    const auto [other, is_new] = tensors.emplace(tensor->name, tensor);
    if (is_new) add(tensor->member);
    if (!is_new && !is_other_form(*tensor, *other->second)) {
      throw std::logic_error("two tensors are called " + tensor->name);
    }
  }
  std::size_t members = 0;
  for (const auto& [pointer, ranges] : structs) members += ranges.size();
  check_covered(structs[std::nullopt], size_, says_its_size_);
  for (const PointedStruct& pointed : pointed_) {
    check_covered(structs[pointed.pointer.offset], pointed.size, pointed.says_its_size);
  }
  // The count also finds a missing member that looks like padding to check_covered.
  if (members == members_) return;
  throw std::logic_error(fmt::format("{} lines for {} members", members, members_));
}

void OpTable::collect(std::set<std::string, std::less<>>& integers,
                      std::set<std::string, std::less<>>& words) const {
  const auto of = [&](const Formula& formula) { formula.collect(integers, words); };
  of(capacity);
  for (const PointedStruct& pointed : pointed_) {
    if (pointed.when) of(*pointed.when);
  }
  for (const Field& field : fields_) {
    if (const auto* given = std::get_if<GivenParameter>(&field)) {
      of(given->unknown);
      of(given->value);
    } else if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      for (const Formula& size : tensor->shape) of(size);
      for (const Formula& stride : tensor->strides) of(stride);
      for (const auto* formula : {&tensor->when, &tensor->dialect, &tensor->dtype_of_row}) {
        if (*formula) of(**formula);
      }
    } else if (const auto* scalar = std::get_if<TableScalar>(&field)) {
      if (scalar->when) of(*scalar->when);
      if (const auto* formula = std::get_if<Formula>(&scalar->value)) of(*formula);
      if (const auto* choices = std::get_if<WordChoices>(&scalar->value)) {
        words.insert(choices->parameter);
      }
      if (const auto* choice = std::get_if<FloatOfChoice>(&scalar->value)) {
        words.emplace(choice->choice.name);
      }
      if (const auto* real = std::get_if<FloatOfInteger>(&scalar->value)) {
        integers.insert(real->parameter);
      }
    }
  }
}

OpParams::OpParams(const OpTable& table)
    : table_(table), own_(std::make_unique<std::byte[]>(table.size())) {
  for (const PointedStruct& pointed : table.pointed()) {
    pointed_.push_back(std::make_unique<std::byte[]>(pointed.size));
    const auto size = static_cast<std::int64_t>(pointed.size);
    if (pointed.says_its_size) std::memcpy(pointed_.back().get(), &size, sizeof size);
  }
  point();
}

OpParams::OpParams(const OpParams& other) : OpParams(other.table_) {
  std::memcpy(data(), other.data(), table_.size());
  for (std::size_t i = 0; i < pointed_.size(); ++i) {
    std::memcpy(pointed_[i].get(), other.pointed_[i].get(), table_.pointed()[i].size);
  }
  point();
  for (const PointedStruct& pointed : table_.pointed()) {
    if (pointed.pointer.pointer(other.data()) == nullptr) {
      pointed.pointer.set_pointer(data(), nullptr);
    }
  }
}

void OpParams::point() {
  for (std::size_t i = 0; i < pointed_.size(); ++i) {
    table_.pointed()[i].pointer.set_pointer(data(), pointed_[i].get());
  }
}

}  // namespace plumb::cases
