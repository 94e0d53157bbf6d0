// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/struct_member.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <utility>

namespace plumb::cases {

namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

std::byte* start_of(const StructMember& member, const void* params) {
  auto* const own = static_cast<std::byte*>(const_cast<void*>(params));
  return member.through ? load<std::byte*>(own + *member.through) : own;
}

std::byte* place(const StructMember& member, const void* params) {
  std::byte* const start = start_of(member, params);
  if (start == nullptr) throw std::invalid_argument(member.name + ": its struct is a null pointer");
  return start + member.offset;
}

}  // namespace

std::size_t size_of(MemberType type) {
  return type == MemberType::i64 || type == MemberType::pointer ? 8 : 4;
}

std::int64_t StructMember::integer(const void* params) const {
  const std::byte* from = place(*this, params);
  switch (type) {
    case MemberType::i32: return load<std::int32_t>(from);
    case MemberType::u32: return load<std::uint32_t>(from);
    default: return load<std::int64_t>(from);
  }
}

float StructMember::real(const void* params) const { return load<float>(place(*this, params)); }

bool StructMember::is_in(const void* params) const { return start_of(*this, params) != nullptr; }

void* StructMember::pointer(const void* params) const {
  return is_in(params) ? load<void*>(place(*this, params)) : nullptr;
}

void StructMember::set_integer(void* params, std::int64_t value) const {
  if (type == MemberType::i64) {
    std::memcpy(place(*this, params), &value, sizeof value);
    return;
  }
  const auto narrow = static_cast<std::uint32_t>(value);
  const bool fits = type == MemberType::u32 ? narrow == value : std::in_range<std::int32_t>(value);
  if (!fits) throw std::out_of_range(fmt::format("{} cannot be {}", name, value));
  std::memcpy(place(*this, params), &narrow, sizeof narrow);
}

void StructMember::set_real(void* params, float value) const {
  std::memcpy(place(*this, params), &value, sizeof value);
}

void StructMember::set_pointer(void* params, void* value) const {
  if (value == nullptr && !is_in(params)) return;
  std::memcpy(place(*this, params), &value, sizeof value);
}

std::string StructMember::text(const void* params) const {
  return type == MemberType::f32 ? fmt::format("{}", real(params))
                                 : fmt::format("{}", integer(params));
}

bool StructMember::same(const void* params, const void* others) const {
  return std::memcmp(place(*this, params), place(*this, others), size_of(type)) == 0;
}

}  // namespace plumb::cases
