// SPDX-License-Identifier: Apache-2.0
//
// What a descriptor shows: colour, a line that is written again and again, its width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb::process {

enum class ColorWhen { automatic, always, never };

// The choice of --color, for the whole process. Call it before a thread asks has_color().
void set_color(ColorWhen when);

// `automatic`: colour on a terminal that can redraw, unless NO_COLOR is set and not empty.
bool has_color(int descriptor);

// A terminal that can clear a line: TERM is set and is not "dumb".
bool can_redraw(int descriptor);

// Columns of the terminal. 80 if the descriptor is no terminal or does not know its width.
std::size_t columns_of(int descriptor);

// The text, cut to so many columns. Counts code points: no text of plumb has wider characters.
std::string_view clipped(std::string_view text, std::size_t columns);

// A line on stderr that is replaced until it is cleared. Shows nothing where a line cannot be
// redrawn. A longer text than the window is cut, because a wrapped line cannot be cleared.
class StatusLine {
 public:
  explicit StatusLine(bool wanted = true);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_shown() const { return shown_; }
  void show(std::string_view text);
  void clear();

 private:
  bool shown_, dirty_ = false;
};

}  // namespace plumb::process
