// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/op_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"

namespace plumb::cases {

namespace {

OpArgument::Kind kind_of(Role role) {
  switch (role) {
    case Role::input: return OpArgument::Kind::input;
    case Role::output: return OpArgument::Kind::output;
    case Role::scratch: return OpArgument::Kind::scratch;
    case Role::state: return OpArgument::Kind::state;
  }
  return OpArgument::Kind::input;
}

std::string type_of(const TableTensor& tensor) {
  if (tensor.dtype_of_row) return "by the row";
  const std::string type(name_of(tensor.dtype));
  if (tensor.dialect) return type + " (e4m3)";
  return tensor.format == "number" ? type : fmt::format("{} ({})", type, tensor.format);
}

void add_tensor(const TableTensor& tensor, std::vector<OpArgument>& arguments) {
  std::vector<std::string> shape;
  for (const Formula& size : tensor.shape) shape.push_back(size.text());
  OpArgument made{.name = tensor.name,
                  .kind = kind_of(tensor.role),
                  .type = type_of(tensor),
                  .shape = fmt::format("[{}]", fmt::join(shape, ", ")),
                  .says = tensor.says,
                  .optional = tensor.when.has_value()};
  if (tensor.in_place) {
    OpArgument before = made;
    before.name += "_before";
    before.kind = OpArgument::Kind::input;
    before.says = tensor.name + " before the call";
    arguments.push_back(std::move(before));
  }
  arguments.push_back(std::move(made));
}

// Escapes text for a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

}  // namespace

std::string_view name_of(OpArgument::Kind kind) {
  constexpr std::string_view kNames[] = {"input", "output",  "scratch", "state",
                                         "real",  "integer", "word"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<OpArgument> arguments_of(const OpDefinition& op) {
  using Kind = OpArgument::Kind;
  std::vector<OpArgument> tensors, others;
  Row usual;
  usual.op = op.name;
  for (const Parameter& p : op.parameters) usual.integers[std::string(p.name)] = p.default_value;
  for (const OpTable::Field& field : op.table->fields()) {
    if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      add_tensor(*tensor, tensors);
    } else if (const auto* scalar = std::get_if<TableScalar>(&field)) {
      if (scalar->member.type != MemberType::f32) continue;
      others.push_back({.name = scalar->member.name,
                        .kind = Kind::real,
                        .type = "f32",
                        .shape = fmt::format("usually {:g}", scalar->real_of(usual)),
                        .says = scalar->says});
    }
  }
  for (const Parameter& p : op.parameters) {
    others.push_back(
        {.name = std::string(p.name),
         .kind = Kind::integer,
         .type = "i64",
         .shape = fmt::format("{} .. {}, usually {}", p.least, p.most, p.default_value),
         .says = std::string(p.meaning)});
  }
  const auto add_word = [&](const auto& word) {
    others.push_back({.name = std::string(word.name),
                      .kind = Kind::word,
                      .shape = fmt::format("{}", fmt::join(word.values, " or ")),
                      .says = std::string(word.meaning)});
  };
  for (const WordParameter& word : op.word_parameters) add_word(word);
  for (const ContractChoice& choice : op.choices) add_word(choice);
  tensors.insert(tensors.end(), others.begin(), others.end());
  return tensors;
}

std::string arguments_page() {
  std::string page =
      "# Arguments of the operations\n\n"
      "Made by `plumb list --arguments` from the tables of the operations. Tensors and reals have "
      "the\n"
      "names of the C struct; integers and words are what a row of a case file sets. In Python, "
      "`judge`\n"
      "and `reference` take all of them by these names, and a function of `@kernel` takes the "
      "members of\n"
      "the C struct ([python.md](../python.md)).\n";
  for (const OpDefinition& op : all_ops()) {
    page += fmt::format("\n## {}\n\n{}.\n\n| argument | kind | type | shape or range | meaning |\n",
                        op.name, op.summary);
    page += "|---|---|---|---|---|\n";
    for (const OpArgument& argument : arguments_of(op)) {
      page += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", argument.name,
                          argument.optional ? "optional " : "", name_of(argument.kind),
                          argument.type, cell(argument.shape), cell(argument.says));
    }
  }
  return page;
}

}  // namespace plumb::cases
