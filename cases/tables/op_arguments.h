// SPDX-License-Identifier: Apache-2.0
//
// Describes the arguments of an op, from its table. plumb list --arguments prints them,
// docs/operations/arguments.md is that output, and Python uses the same list.
#pragma once

#include <string>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

struct OpArgument {
  // input, output, scratch, state: tensors. real: a float member of the C struct. integer, word:
  // row parameters.
  enum class Kind { input, output, scratch, state, real, integer, word };
  std::string name;
  Kind kind = Kind::input;
  std::string type;   // element type: "bf16", "u8 (e4m3fn)"; empty for words
  std::string shape;  // "[tokens, hidden]"; for an integer its range and usual value
  std::string says;
  bool optional = false;
};
std::string_view name_of(OpArgument::Kind kind);

// Tensors first, in the order of the C struct. A tensor with two forms occurs twice.
std::vector<OpArgument> arguments_of(const OpDefinition& op);
// The arguments of all ops as Markdown.
std::string arguments_page();

}  // namespace plumb::cases
