// SPDX-License-Identifier: Apache-2.0
//
// Structs as bytes: CBOR, which unlike JSON has NaN and infinity. A struct lists its fields once,
// with NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE; an enum is its name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "process/worker.h"

namespace plumb::process {

// Bytes that are not the struct that was expected.
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
Bytes encode(const T& value) {
  return nlohmann::json::to_cbor(nlohmann::json(value));
}

// Throws BadMessage.
template <class T>
T decode(const Bytes& bytes) {
  try {
    return nlohmann::json::from_cbor(bytes).get<T>();
  } catch (const std::exception& error) {
    throw BadMessage(error.what());
  }
}

// One request with a typed body, answered with a typed body.
template <class Result, class Body>
std::variant<Result, Death> ask(Worker& worker, std::uint64_t task, const std::string& name,
                                const Body& body) {
  const auto answer = worker.run({task, name, encode(body)});
  if (const auto* death = std::get_if<Death>(&answer)) return *death;
  try {
    return decode<Result>(std::get<Bytes>(answer));
  } catch (const BadMessage& error) {
    return worker.refuse(error.what());
  }
}

// The enumerator of this name, of the first `count`. Throws nlohmann::json::other_error.
template <class Enum, class Name>
Enum enum_from(const nlohmann::json& name, int count, Name name_of) {
  for (int i = 0; i < count; ++i) {
    if (name == std::string(name_of(static_cast<Enum>(i)))) return static_cast<Enum>(i);
  }
  throw nlohmann::json::other_error::create(501, "unknown name " + name.dump(), &name);
}

}  // namespace plumb::process

// The codec of an enum whose first `count` enumerators name_of() names. In the enum's namespace.
#define PLUMB_ENUM_BY_NAME(Enum, count)                                                         \
  inline void to_json(nlohmann::json& json, Enum value) { json = std::string(name_of(value)); } \
  inline void from_json(const nlohmann::json& json, Enum& value) {                              \
    value = plumb::process::enum_from<Enum>(json, count, [](Enum e) { return name_of(e); });    \
  }

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
