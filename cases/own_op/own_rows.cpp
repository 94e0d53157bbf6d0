// SPDX-License-Identifier: Apache-2.0
#include "cases/own_op/own_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "cases/own_op/own_op_table.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr double kOtherReals = 1.25;
constexpr std::int64_t kGap = 8, kRandomRows = 4, kMostRandomGap = 40;

// Puts the text between quotation marks, as a TOML string.
std::string quoted(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return "\"" + made + "\"";
}

std::string row_text(const std::string& name, const std::string& why, const std::string& more,
                     const std::map<std::string, std::int64_t>& parameters) {
  std::string text = fmt::format("[[row]]\nname = {}\nwhy = {}\ngolden = false\n{}", quoted(name),
                                 quoted(why), more);
  for (const auto& [parameter, value] : parameters) {
    text += fmt::format("{} = {}\n", parameter, value);
  }
  return text + "\n";
}

// Reals with unusual values, because a kernel may have the usual values hard-coded.
std::string other_reals(const OwnOp& op, double factor) {
  std::string text;
  for (const OwnReal& real : op.reals) {
    const double usual = static_cast<double>(real.value);
    text += fmt::format("{} = {:.9e}\n", real.name, usual == 0 ? factor : factor * usual);
  }
  return text;
}

std::string random_rows(const OwnOp& op) {
  std::string text;
  const std::uint64_t seed = seed_of(op.name);
  for (std::int64_t i = 0; i < kRandomRows; ++i) {
    std::uint64_t draw = 0;
    const auto next = [&](std::int64_t least, std::int64_t most) {
      return integer(mix(seed, static_cast<std::uint64_t>(i)), draw++, least, most);
    };
    std::map<std::string, std::int64_t> parameters{{kOwnRowGap, next(0, kMostRandomGap)},
                                                   {kOwnOutGap, next(0, kMostRandomGap)}};
    for (const OwnSize& size : op.sizes) {
      parameters[size.name] =
          size.values[static_cast<std::size_t>(next(0, std::ssize(size.values) - 1))];
    }
    for (const OwnTensor& tensor : op.tensors) {
      if (tensor.optional) parameters[tensor.name] = next(0, 1);
    }
    const double factor = std::exp2(static_cast<double>(next(-8, 8)) / 8);
    text += row_text(fmt::format("random_{}", i), "Drawn from the values of the sizes.",
                     other_reals(op, factor), parameters);
  }
  return text;
}

}  // namespace

std::string own_rows(const OwnOp& op) {
  std::string text = row_text("usual", "The first value of each size.",
                              "tier = \"smoke\"\nconcurrent = \"smoke\"\n", {});
  text += row_text("rows_apart", "Rows of a slice: a kernel that ignores strides reads others.",
                   "tier = \"smoke\"\n" + other_reals(op, kOtherReals),
                   {{kOwnRowGap, kGap}, {kOwnOutGap, 2 * kGap}});
  for (const OwnSize& size : op.sizes) {
    for (std::size_t i = 1; i < size.values.size(); ++i) {
      text += row_text(fmt::format("{}_{}", size.name, size.values[i]),
                       fmt::format("Another value of {}.", size.name), "",
                       {{size.name, size.values[i]}});
    }
  }
  for (const OwnTensor& tensor : op.tensors) {
    if (!tensor.optional) continue;
    text +=
        row_text("without_" + tensor.name, tensor.name + " is optional.", "", {{tensor.name, 0}});
  }
  text += random_rows(op);
  for (const OwnRow& row : op.rows) {
    text += row_text(row.name, row.why, fmt::format("tier = \"{}\"\n", row.tier), row.sizes);
  }
  return text;
}

}  // namespace plumb::cases
