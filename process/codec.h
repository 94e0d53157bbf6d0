// SPDX-License-Identifier: Apache-2.0
//
// Structs as bytes: CBOR, which unlike JSON has NaN and infinity. Who sends and receives them
// includes this; one source per struct says how it is encoded (process/codec_fields.h).
#pragma once

#include <stdexcept>
#include <string>
#include <variant>

#include "process/worker.h"

namespace plumb::process {

// Bytes that are not the struct that was expected.
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
Bytes encode(const T& value);
// Throws BadMessage.
template <class T>
T decode(const Bytes& bytes);

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

}  // namespace plumb::process
