// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace plumb::device {

std::string short_kernel_name(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return mangled;
  std::string name = text.get();
  int depth = 0;
  std::size_t end = name.size(), begin = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')' || name[i] == '>') ++depth;
    if (name[i] == '(' || name[i] == '<') --depth;
    if (name[i] == '(' && depth == 0 && end == name.size()) end = i;
    const bool separator = name[i] == ' ' || (name[i] == ':' && i > 0 && name[i - 1] == ':');
    if (depth == 0 && end != name.size() && separator) {
      begin = i + 1;
      break;
    }
  }
  return name.substr(begin, end - begin);
}

}  // namespace plumb::device
