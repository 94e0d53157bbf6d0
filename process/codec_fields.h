// SPDX-License-Identifier: Apache-2.0
//
// Encoding of structs for process/codec.h. NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE lists the fields of a
// struct; an enum is encoded as its name. PLUMB_MESSAGE instantiates the codec of a struct in one
// source file, because its templates take seconds to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "process/codec.h"

namespace plumb::process {

Bytes cbor_of(const nlohmann::json& value);
nlohmann::json json_of(const Bytes& cbor);  // throws nlohmann::json::exception

template <class T>
Bytes encode(const T& value) {
  return cbor_of(nlohmann::json(value));
}

template <class T>
T decode(const Bytes& bytes) {
  try {
    return json_of(bytes).get<T>();
  } catch (const std::exception& error) {
    throw BadMessage(error.what());
  }
}

// The enumerator with this name among the first `count`. Throws nlohmann::json::other_error.
template <class Enum, class Name>
Enum enum_from(const nlohmann::json& name, int count, Name name_of) {
  for (int i = 0; i < count; ++i) {
    if (name == std::string(name_of(static_cast<Enum>(i)))) return static_cast<Enum>(i);
  }
  throw nlohmann::json::other_error::create(501, "unknown name " + name.dump(), &name);
}

}  // namespace plumb::process

// Defines the codec of an enum whose first `count` enumerators name_of() names. Use it in the
// enum's namespace.
#define PLUMB_ENUM_BY_NAME(Enum, count)                                                         \
  inline void to_json(nlohmann::json& json, Enum value) { json = std::string(name_of(value)); } \
  inline void from_json(const nlohmann::json& json, Enum& value) {                              \
    value = plumb::process::enum_from<Enum>(json, count, [](Enum e) { return name_of(e); });    \
  }

// Instantiates the codec of a struct whose fields are listed. Use it at global scope.
#define PLUMB_MESSAGE(Struct)                                           \
  template plumb::process::Bytes plumb::process::encode(const Struct&); \
  template Struct plumb::process::decode<Struct>(const Bytes&);

namespace nlohmann {
template <class T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& to, const std::optional<T>& value) {
    to = value ? json(*value) : json(nullptr);
  }
  static void from_json(const json& from, std::optional<T>& value) {
    value = from.is_null() ? std::optional<T>() : from.get<T>();
  }
};
}  // namespace nlohmann
