// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/dialect.h"

#include <fmt/format.h>

#include <utility>

namespace plumb::cases {

using reference::Dialect;

Dialect native_dialect(const device::Properties& platform) {
  return platform.fp8 == device::Fp8Dialect::e4m3fnuz ? Dialect::e4m3fnuz : Dialect::e4m3fn;
}

WordParameter dialect_word(std::string_view name, std::string_view meaning) {
  return {name, {name_of(Dialect::e4m3fn), name_of(Dialect::e4m3fnuz)}, meaning};
}

Dialect dialect_of(const Row& row, std::string_view parameter, Dialect default_dialect) {
  const std::string_view word = row.word(parameter);
  if (word.empty()) return default_dialect;
  return word == name_of(Dialect::e4m3fnuz) ? Dialect::e4m3fnuz : Dialect::e4m3fn;
}

Dialect dialect_of(const Row& row, std::string_view parameter, const device::Properties& platform) {
  return dialect_of(row, parameter, native_dialect(platform));
}

std::string_view name_of(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? "e4m3fn" : "e4m3fnuz";
}

plumb_format format_of(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ;
}

WordChoices dialect_words(std::string parameter) {
  return {std::move(parameter),
          {{"e4m3fn", PLUMB_E4M3FN}, {"e4m3fnuz", PLUMB_E4M3FNUZ}},
          [](const device::Properties& platform) -> std::int64_t {
            return format_of(native_dialect(platform));
          }};
}

}  // namespace plumb::cases
