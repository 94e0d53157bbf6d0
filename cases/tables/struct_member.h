// SPDX-License-Identifier: Apache-2.0
//
// A member of an op's C struct, by offset and type, so that generic code can read and write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace plumb::cases {

enum class MemberType { i32, u32, i64, f32, pointer };
std::size_t size_of(MemberType type);

struct StructMember {
  std::string name;  // spelled as in C: "x", "cache.page", "plan->tiles"
  MemberType type = MemberType::i64;
  std::size_t offset = 0;  // bytes
  // For a member of a pointed-to struct: offset of that pointer in the op's own struct.
  std::optional<std::size_t> through = {};

  // False if the pointer to the member's struct is null. Such a member reads as a null pointer, and
  // has no integer value.
  bool is_in(const void* params) const;
  std::int64_t integer(const void* params) const;
  float real(const void* params) const;
  void* pointer(const void* params) const;
  // Throws std::out_of_range for a value that the member cannot hold.
  void set_integer(void* params, std::int64_t value) const;
  void set_real(void* params, float value) const;
  void set_pointer(void* params, void* value) const;
  std::string text(const void* params) const;
  // True if both structs hold the same bytes in this member.
  bool same(const void* params, const void* others) const;
};

template <class T>
constexpr MemberType member_type() {
  if constexpr (std::is_pointer_v<T>) return MemberType::pointer;
  if constexpr (std::is_same_v<T, float>) return MemberType::f32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return MemberType::u32;
  if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::int32_t>) return MemberType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return MemberType::i64;
}

template <class S, class T>
std::size_t offset_in(T S::* member) {
  static const S probe{};
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(probe.*member)) -
                                  reinterpret_cast<const std::byte*>(&probe));
}

}  // namespace plumb::cases
