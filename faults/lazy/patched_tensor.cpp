// SPDX-License-Identifier: Apache-2.0
#include "faults/lazy/patched_tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

struct PatchedElement {
  const std::vector<std::int64_t>&index, &shape;
  std::int64_t offset;  // distance from the first element, in elements
  std::size_t size;     // bytes per element
};

// Whether a kernel of this kind ignores the element or does not write it.
bool is_changed(LazyKind kind, const PatchedElement& element) {
  switch (kind) {
    case LazyKind::last_row: return element.index.front() == element.shape.front() - 1;
    case LazyKind::last_column: return element.index.back() == element.shape.back() - 1;
    case LazyKind::last_element: {
      for (std::size_t i = 0; i < element.shape.size(); ++i) {
        if (element.index[i] != element.shape[i] - 1) return false;
      }
      return true;
    }
    case LazyKind::int32_offsets: return element.offset >> 31 != 0;
    case LazyKind::uint32_bytes:
      return (static_cast<std::uint64_t>(element.offset) * element.size) >> 32 != 0;
    default: return true;
  }
}

bool next(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return true;
    index[i] = 0;
  }
  return false;
}

// Float bits that a kernel of this kind reads in place of `bits`.
std::uint32_t special_bits(LazyKind kind, std::uint32_t bits) {
  constexpr std::uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kNan = 0x7fc00000u;
  const std::uint32_t magnitude = bits & ~kSign, sign = bits & kSign;
  switch (kind) {
    case LazyKind::nan: return magnitude > kInfinity ? 0 : bits;
    case LazyKind::unusual_nan: return magnitude > kInfinity && bits != kNan ? 0 : bits;
    // The largest number of bf16, which is one of fp32 too.
    case LazyKind::infinity: return magnitude == kInfinity ? sign | 0x7f7f0000u : bits;
    case LazyKind::negative_zero: return bits == kSign ? 0 : bits;
    default: return bits;
  }
}

}  // namespace

std::optional<TensorPatch> TensorPatch::of(const LaunchTensor& tensor, LazyKind kind,
                                           const TensorSpec& spec) {
  if (tensor.data == nullptr || tensor.shape.empty()) return std::nullopt;
  const std::vector<std::int64_t>& shape = tensor.shape;
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) {
    elements *= dimension;
    if (elements < 1 || elements > kMostElements) return std::nullopt;
  }
  TensorPatch patch;
  patch.kind_ = kind;
  patch.data_ = tensor.data;
  patch.size_ = size_of(tensor.dtype);
  patch.row_ = static_cast<std::size_t>(elements / shape.front());
  const std::int64_t piece = spec.piece != 0 ? spec.piece : tensor.strides.front();
  std::vector<std::int64_t> index(shape.size(), 0);
  do {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * tensor.strides[i];
    if (!spec.placement.empty()) {
      const std::int64_t place = spec.placement[static_cast<std::size_t>(offset / piece)];
      offset = place * piece + offset % piece;
    }
    if (!is_changed(kind, {index, shape, offset, patch.size_})) continue;
    patch.offsets_.push_back(static_cast<std::size_t>(offset) * patch.size_);
  } while (next(index, shape));
  if (patch.offsets_.empty()) return std::nullopt;
  patch.saved_.resize(patch.offsets_.size() * patch.size_);
  return patch;
}

void TensorPatch::overwrite_special(std::size_t element) {
  if (kind_ == LazyKind::below_minus_one) {
    if (integer(element) < -1) std::memset(at(element), 0, size_);
    return;
  }
  // bf16 has the upper half of a float's bits.
  std::uint32_t bits = 0;
  std::byte* const upper = reinterpret_cast<std::byte*>(&bits) + sizeof bits - size_;
  std::memcpy(upper, at(element), size_);
  bits = special_bits(kind_, bits);
  std::memcpy(at(element), upper, size_);
}

std::int64_t TensorPatch::integer(std::size_t element) const {
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  if (size_ == sizeof wide) std::memcpy(&wide, at(element), sizeof wide);
  if (size_ == sizeof narrow) std::memcpy(&narrow, at(element), sizeof narrow);
  return size_ == sizeof wide ? wide : std::int64_t{narrow};
}

void TensorPatch::overwrite() {
  std::size_t largest = 0;
  if (kind_ == LazyKind::largest) {
    for (std::size_t i = 1; i < offsets_.size(); ++i) {
      if (integer(i) > integer(largest)) largest = i;
    }
  }
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (kind_ == LazyKind::zeros || kind_ == LazyKind::int32_offsets ||
        kind_ == LazyKind::uint32_bytes) {
      std::memset(at(i), 0, size_);
    }
    if (kind_ == LazyKind::first_row) {
      std::memcpy(at(i), saved_.data() + i % row_ * size_, size_);
    }
    if (kind_ == LazyKind::largest) std::memcpy(at(i), saved_.data() + largest * size_, size_);
    if (kind_ >= LazyKind::below_minus_one) overwrite_special(i);
  }
}

void TensorPatch::begin(const void* patch) {
  auto& self = *const_cast<TensorPatch*>(static_cast<const TensorPatch*>(patch));
  for (std::size_t i = 0; i < self.offsets_.size(); ++i) {
    std::memcpy(self.saved_.data() + i * self.size_, self.at(i), self.size_);
  }
  self.overwrite();
}

void TensorPatch::end(const void* patch) {
  const auto& self = *static_cast<const TensorPatch*>(patch);
  for (std::size_t i = 0; i < self.offsets_.size(); ++i) {
    std::memcpy(self.at(i), self.saved_.data() + i * self.size_, self.size_);
  }
}

}  // namespace plumb::cases
