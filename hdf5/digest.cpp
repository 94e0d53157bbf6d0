// SPDX-License-Identifier: Apache-2.0
#include "hdf5/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace plumb::hdf5 {

namespace {

std::string digits_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string digest_of(std::span<const std::byte> bytes) {
  return digits_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string digest_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

struct DigestOfParts::State {
  XXH3_state_t* stream = XXH3_createState();
  ~State() { XXH3_freeState(stream); }
};

DigestOfParts::DigestOfParts() : state_(std::make_unique<State>()) {
  if (state_->stream == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->stream);
}

DigestOfParts::~DigestOfParts() = default;

void DigestOfParts::add(std::span<const std::byte> part) {
  XXH3_128bits_update(state_->stream, part.data(), part.size());
}

std::string DigestOfParts::digits() const { return digits_of(XXH3_128bits_digest(state_->stream)); }

bool is_digest(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace plumb::hdf5
