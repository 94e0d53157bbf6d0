// SPDX-License-Identifier: Apache-2.0
//
// Encodes structs as CBOR, which unlike JSON supports NaN and infinity. Senders and receivers
// include this header. One source file per struct defines its encoding (process/codec_fields.h).
#pragma once

#include <stdexcept>
#include <string>
#include <variant>

#include "process/worker.h"

namespace plumb::process {

// The bytes do not encode the expected struct.
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
Bytes encode(const T& value);
// Throws BadMessage if `bytes` does not encode a T.
template <class T>
T decode(const Bytes& bytes);

// Sends one request with a typed body and returns the typed body of the answer.
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
