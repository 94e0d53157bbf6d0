// SPDX-License-Identifier: Apache-2.0
//
// The arguments of an op in words, from its table. plumb list --arguments prints them, and
// docs/operations/arguments.md is its output. Python uses the same list.
#pragma once

#include <string>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

struct OpArgument {
  // Tensors: input, output, scratch, state. A real is a float of the C struct. Integers and words
  // are row parameters.
  enum class Kind { input, output, scratch, state, real, integer, word };
  std::string name;
  Kind kind = Kind::input;
  std::string type;   // of elements: "bf16", "u8 (e4m3fn)"; empty for words
  std::string shape;  // "[tokens, hidden]"; of an integer its range and usual value
  std::string says;
  bool optional = false;
};
std::string_view name_of(OpArgument::Kind kind);

// Tensors first, in the order of the C struct. A tensor with two forms is there twice.
std::vector<OpArgument> arguments_of(const OpDefinition& op);
// Of all ops, as Markdown.
std::string arguments_page();

}  // namespace plumb::cases
