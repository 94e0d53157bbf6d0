// SPDX-License-Identifier: Apache-2.0
//
// The fp8 dialect (e4m3fn or e4m3fnuz) of a row: named by a word of the row, else the dialect that
// the platform writes.
#pragma once

#include <string>
#include <string_view>

#include "cases/tables/op_table.h"
#include "cases/tables/row.h"
#include "device/device.h"
#include "reference/formats/e4m3.h"

namespace plumb::cases {

// The dialect that the platform's own encoders write.
reference::Dialect native_dialect(const device::Properties& platform);
// Declares a dialect word for rows: its name, values and meaning.
WordParameter dialect_word(std::string_view name = "dialect",
                           std::string_view meaning = "of the fp8 codes; else the platform's");
// The dialect that the row's word names. Without the word: the given default, or the platform's
// own.
reference::Dialect dialect_of(const Row& row, std::string_view parameter,
                              reference::Dialect default_dialect);
reference::Dialect dialect_of(const Row& row, std::string_view parameter,
                              const device::Properties& platform);
plumb_format format_of(reference::Dialect dialect);
std::string_view name_of(reference::Dialect dialect);
// For an op table: maps the word to a struct member. A row without the word has the platform's own
// dialect.
WordChoices dialect_words(std::string parameter);

}  // namespace plumb::cases
