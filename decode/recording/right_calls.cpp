// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/right_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <string>
#include <type_traits>

namespace plumb::cases {

namespace {

using Digest = RightCalls::Digest;

Digest digest_of(const void* bytes, std::size_t count) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, count);
  return {hash.high64, hash.low64};
}

std::string text_of(const JudgedCall& call, const device::Properties& properties) {
  std::string text = fmt::format("{} {} {} {} {}", call.op, properties.platform, call.row.integers,
                                 call.row.words, call.row.reals);
  static_assert(std::is_trivially_copyable_v<plumb_numerics>);
  text.append(reinterpret_cast<const char*>(&call.declared), sizeof call.declared);
  return text;
}

}  // namespace

Digest RightCalls::digest(const JudgedCall& call, const TensorSet& tensors,
                          const device::Properties& properties) {
  const std::string text = text_of(call, properties);
  std::vector<Digest> parts{digest_of(text.data(), text.size())};
  for (const HostTensor& tensor : tensors.all()) {
    const auto& shape = tensor.spec().shape;
    parts.push_back(digest_of(shape.data(), shape.size() * sizeof shape[0]));
    parts.push_back(digest_of(tensor.bytes().data(), tensor.bytes().size()));
  }
  return digest_of(parts.data(), parts.size() * sizeof parts[0]);
}

bool RightCalls::has(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  return digests_.contains(digest);
}

void RightCalls::add(const Digest& digest) {
  constexpr std::size_t kMost = std::size_t{1} << 18;
  const std::lock_guard lock(mutex_);
  if (digests_.size() >= kMost) digests_.clear();
  digests_.insert(digest);
}

RightCalls& right_calls() {
  static RightCalls calls;
  return calls;
}

}  // namespace plumb::cases
