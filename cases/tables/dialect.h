// SPDX-License-Identifier: Apache-2.0
//
// The fp8 dialect of a row: the word of a parameter, or what the platform writes.
#pragma once

#include <string>
#include <string_view>

#include "cases/tables/op_table.h"
#include "cases/tables/row.h"
#include "device/device.h"
#include "reference/formats/e4m3.h"

namespace plumb::cases {

// Of the platform's own encoders.
reference::Dialect native_dialect(const device::Properties& platform);
// The word of a row, its values and their meaning.
WordParameter dialect_word(std::string_view name = "dialect",
                           std::string_view meaning = "of the fp8 codes; else the platform's");
// Without the word the default.
reference::Dialect dialect_of(const Row& row, std::string_view parameter,
                              reference::Dialect default_dialect);
reference::Dialect dialect_of(const Row& row, std::string_view parameter,
                              const device::Properties& platform);
plumb_format format_of(reference::Dialect dialect);
std::string_view name_of(reference::Dialect dialect);
// Of a member in an op table; a row without the word has the platform's own.
WordChoices dialect_words(std::string parameter);

}  // namespace plumb::cases
