// SPDX-License-Identifier: Apache-2.0
#include "golden/device_code.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "golden/model.h"
#include "plumb_source_digests.h"

namespace plumb::golden {

namespace {

template <class T>
T read_at(std::ifstream& file, std::uint64_t offset) {
  T value{};
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::vector<char> section(std::ifstream& file, const Elf64_Shdr& header) {
  std::vector<char> bytes(header.sh_size);
  file.seekg(static_cast<std::streamoff>(header.sh_offset));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Sections in which nvcc and hipcc store device code.
bool holds_device_code(std::string_view name) {
  return name == ".nv_fatbin" || name == ".hip_fatbin";
}

std::string own_device_code() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  const auto at = [&](int i) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + sizeof(Elf64_Shdr) * std::uint64_t(i));
  };
  const std::vector<char> names = section(file, at(header.e_shstrndx));
  std::string digests;
  for (int i = 0; file && i < header.e_shnum; ++i) {
    const Elf64_Shdr one = at(i);
    if (one.sh_name >= names.size() || !holds_device_code(names.data() + one.sh_name)) continue;
    const std::vector<char> bytes = section(file, one);
    digests += digest_of(std::string_view(bytes.data(), bytes.size()));
  }
  return digests.empty() ? "unknown" : digest_of(digests);
}

}  // namespace

std::string device_code_digest(std::string_view op, bool simulated) {
  if (!simulated) {
    static const std::string own = own_device_code();
    return own;
  }
  std::string all;
  for (const SourceDigest& source : kSourceDigests) {
    if (source.op == op) return std::string(source.digest);
    all += source.digest;
  }
  return digest_of(all);
}

}  // namespace plumb::golden
