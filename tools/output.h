// SPDX-License-Identifier: Apache-2.0
//
// Checked standard output: text that could not be written makes the command fail.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace plumb::tools {

// Opens /dev/null for each of descriptors 0 to 2 that the caller closed. Otherwise the next opened
// file would get such a descriptor, and text for the terminal would land in it. Writing to them
// fails.
void occupy_standard_descriptors();

// Does not throw: a run whose text cannot be written still writes its reports.
void put(std::string_view text);
template <class... Values>
void put_format(fmt::format_string<Values...> text, Values&&... values) {
  put(fmt::format(text, std::forward<Values>(values)...));
}
// As put, and flushes, for text that a reader waits for.
void put_at_once(std::string_view text);

// Prints "plumb: " and the line to standard error. If both outputs go to one file, the line comes
// behind the text that was put before it.
void print_error(std::string_view line);

// Throws std::runtime_error if text of this process did not reach standard output. A reader that
// closed the pipe (| head) wanted no more, and is no error.
void finish_output();

}  // namespace plumb::tools
