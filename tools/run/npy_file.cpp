// SPDX-License-Identifier: Apache-2.0
#include "tools/run/npy_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace plumb::tools {

void write_npy(const std::string& path, std::string_view type,
               const std::vector<std::int64_t>& shape, std::span<const std::byte> elements) {
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  header.resize((kPreamble + header.size() + kAlignment) / kAlignment * kAlignment - kPreamble,
                ' ');
  header.back() = '\n';
  const std::string start =
      fmt::format("\x93NUMPY{}{}{}{}", '\1', '\0', static_cast<char>(header.size() % 256),
                  static_cast<char>(header.size() / 256));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << start << header;
  file.write(reinterpret_cast<const char*>(elements.data()),
             static_cast<std::streamsize>(elements.size()));
  file.close();
  if (file.fail()) {
    throw std::runtime_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
}

}  // namespace plumb::tools
