// SPDX-License-Identifier: Apache-2.0
#include "process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace plumb::process {

namespace {

ColorWhen color_when = ColorWhen::automatic;

constexpr std::size_t kUsualColumns = 80;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void set_color(ColorWhen when) { color_when = when; }

bool has_color(int descriptor) {
  switch (color_when) {
    case ColorWhen::always: return true;
    case ColorWhen::never: return false;
    case ColorWhen::automatic: break;
  }
  return can_redraw(descriptor) && variable("NO_COLOR").empty();
}

bool can_redraw(int descriptor) {
  const std::string_view term = variable("TERM");
  return isatty(descriptor) == 1 && !term.empty() && term != "dumb";
}

std::size_t columns_of(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

std::string_view clipped(std::string_view text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;  // UTF-8
    if (!continues && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

StatusLine::StatusLine(bool wanted) : shown_(wanted && can_redraw(STDERR_FILENO)) {}

StatusLine::~StatusLine() { clear(); }

void StatusLine::show(std::string_view text) {
  if (!shown_) return;
  // The last column stays empty: some terminals wrap when it is written.
  const std::string line(clipped(text, columns_of(STDERR_FILENO) - 1));
  std::fputs(("\r\033[K" + line).c_str(), stderr);
  std::fflush(stderr);
  dirty_ = true;
}

void StatusLine::clear() {
  if (!dirty_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  dirty_ = false;
}

}  // namespace plumb::process
