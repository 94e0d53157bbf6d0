// SPDX-License-Identifier: Apache-2.0
#include "cases/tensors/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <stdexcept>
#include <utility>

#include "cases/tensors/bad_row.h"
#include "cases/tensors/shapes_only.h"
#include "device/device.h"
#include "reference/bound.h"

namespace plumb::cases {

namespace {

std::int64_t product(const std::vector<std::int64_t>& shape, std::size_t count) {
  std::int64_t total = 1;
  for (std::size_t i = 0; i < count; ++i) total *= shape[i];
  return total;
}

void check(const TensorSpec& spec) {
  for (const std::int64_t size : spec.shape) {
    if (size < 0) throw std::invalid_argument(fmt::format("{}: a negative size", spec.name));
  }
  if (spec.strides.size() != spec.shape.size()) {
    throw std::invalid_argument(fmt::format("{}: {} strides for {} dimensions", spec.name,
                                            spec.strides.size(), spec.shape.size()));
  }
  if (!spec.strides.empty() && spec.strides.back() != 1) {
    throw std::invalid_argument(
        fmt::format("{}: the last dimension has to be contiguous", spec.name));
  }
}

// Throws BadRow for a tensor larger than a quarter of the memory, because several copies exist: on
// the host, on the device, as expected values. Without this check a huge shape would end the
// process without a message.
void check_fits(const TensorSpec& spec, std::size_t bytes) {
  static const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (static_cast<double>(bytes) <= memory / 4) return;
  throw BadRow(fmt::format("{} [{}] takes {:.0f} GiB, more than a quarter of this machine's memory",
                           spec.name, fmt::join(spec.shape, ", "),
                           static_cast<double>(bytes) / (1 << 30)));
}

thread_local bool shapes_only = false;

}  // namespace

ShapesOnly::ShapesOnly() : before_(std::exchange(shapes_only, true)) {}
ShapesOnly::~ShapesOnly() { shapes_only = before_; }

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8: return 1;
    case Dtype::bf16: return 2;
    case Dtype::i32:
    case Dtype::f32: return 4;
    case Dtype::i64: return 8;
  }
  return 0;
}

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8: return "u8";
    case Dtype::i32: return "i32";
    case Dtype::i64: return "i64";
    case Dtype::bf16: return "bf16";
    case Dtype::f32: return "f32";
  }
  return "?";
}

HostTensor::HostTensor(TensorSpec spec) : spec_(std::move(spec)) {
  if (spec_.strides.empty()) spec_.strides = contiguous_strides(spec_.shape);
  check(spec_);
  contiguous_ = spec_.strides == contiguous_strides(spec_.shape);
  const std::size_t bytes = static_cast<std::size_t>(extent()) * size_of(spec_.dtype);
  check_fits(spec_, bytes);
  bytes_ = std::make_shared<Bytes>(shapes_only ? 0 : bytes);
  if (spec_.sparse && device_bytes(*this) > device::kLargestSparse) {
    throw BadRow(fmt::format("{} would take {} GiB of addresses, more than {}", spec_.name,
                             device_bytes(*this) >> 30, device::kLargestSparse >> 30));
  }
}

HostTensor::HostTensor(const HostTensor& other)
    : spec_(other.spec_), contiguous_(other.contiguous_) {
  bytes_ = std::make_shared<Bytes>(other.bytes_->size());
  std::copy_n(other.bytes_->data(), bytes_->size(), bytes_->data());
}

HostTensor& HostTensor::operator=(const HostTensor& other) { return *this = HostTensor(other); }

HostTensor HostTensor::alias() const {
  HostTensor same({.name = spec_.name});
  same.spec_ = spec_;
  same.contiguous_ = contiguous_;
  same.bytes_ = bytes_;
  return same;
}

HostTensor HostTensor::alias(TensorSpec spec) const {
  HostTensor same({.name = spec.name});
  if (spec.strides.empty()) spec.strides = contiguous_strides(spec.shape);
  check(spec);
  same.spec_ = std::move(spec);
  same.contiguous_ = same.spec_.strides == contiguous_strides(same.spec_.shape);
  if (static_cast<std::size_t>(same.extent()) * size_of(same.spec_.dtype) != bytes_->size()) {
    throw std::invalid_argument(same.spec_.name + ": another tensor's bytes are not as many");
  }
  same.bytes_ = bytes_;
  return same;
}

std::int64_t HostTensor::elements() const { return product(spec_.shape, spec_.shape.size()); }

std::int64_t HostTensor::extent() const {
  if (elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < spec_.shape.size(); ++i) {
    last += (spec_.shape[i] - 1) * spec_.strides[i];
  }
  return last + 1;
}

std::int64_t HostTensor::rows() const {
  return spec_.shape.empty() ? 1 : product(spec_.shape, spec_.shape.size() - 1);
}

std::int64_t HostTensor::columns() const { return spec_.shape.empty() ? 1 : spec_.shape.back(); }

std::int64_t HostTensor::row_offset(std::int64_t row) const {
  // No address may be formed behind the null pointer of an empty tensor.
  if (bytes_->empty()) return 0;
  if (contiguous_) return row * columns();
  std::int64_t offset = 0;
  for (std::size_t i = spec_.shape.size(); i > 1; --i) {
    offset += row % spec_.shape[i - 2] * spec_.strides[i - 2];
    row /= spec_.shape[i - 2];
  }
  return offset;
}

std::vector<std::int64_t> HostTensor::place_of(std::int64_t row, std::int64_t column) const {
  std::vector<std::int64_t> place(spec_.shape.size());
  place.back() = column;
  for (std::size_t i = place.size(); i > 1; --i) {
    place[i - 2] = row % spec_.shape[i - 2];
    row /= spec_.shape[i - 2];
  }
  if (spec_.excerpt) {
    std::int64_t& within = place[spec_.excerpt->dimension];
    within = spec_.excerpt->places[static_cast<std::size_t>(within)];
  }
  return place;
}

std::string HostTensor::coordinates(std::int64_t row, std::int64_t column) const {
  return spec_.shape.empty() ? "[]" : fmt::format("[{}]", fmt::join(place_of(row, column), ", "));
}

std::int64_t HostTensor::original_row(std::int64_t row) const {
  if (!spec_.excerpt) return row;
  const std::vector<std::int64_t> place = place_of(row, 0);
  std::int64_t original = 0;
  for (std::size_t i = 0; i + 1 < place.size(); ++i) {
    const bool cut = i == spec_.excerpt->dimension;
    original = original * (cut ? spec_.excerpt->size : spec_.shape[i]) + place[i];
  }
  return original;
}

std::int64_t HostTensor::original_rows() const {
  if (!spec_.excerpt || spec_.excerpt->dimension + 1 == spec_.shape.size()) return rows();
  std::int64_t count = spec_.excerpt->size;
  for (std::size_t i = 0; i + 1 < spec_.shape.size(); ++i) {
    if (i != spec_.excerpt->dimension) count *= spec_.shape[i];
  }
  return count;
}

double HostTensor::value(std::int64_t row, std::int64_t column) const {
  const std::int64_t i = row_offset(row) + column;
  switch (spec_.dtype) {
    case Dtype::u8: return data<std::uint8_t>()[i];
    case Dtype::i32: return data<std::int32_t>()[i];
    case Dtype::i64: return static_cast<double>(data<std::int64_t>()[i]);
    case Dtype::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(data<std::uint16_t>()[i]) << 16);
    case Dtype::f32: return data<float>()[i];
  }
  return 0;
}

bool same_bytes(const std::byte* a, const std::byte* b, std::size_t bytes) {
  constexpr std::int64_t kPiece = 1 << 20;
  std::atomic<bool> same = true;
  reference::parallel_for(
      static_cast<std::int64_t>(bytes), kPiece, [&](std::int64_t begin, std::int64_t end) {
        if (std::memcmp(a + begin, b + begin, static_cast<std::size_t>(end - begin)) != 0) {
          same = false;
        }
      });
  return same;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::size_t device_bytes(const HostTensor& tensor) {
  const std::vector<std::int64_t>& placement = tensor.spec().placement;
  if (placement.empty()) return tensor.bytes().size();
  // The last piece may be shorter than the others.
  const std::size_t whole = bytes_per_piece(tensor);
  return static_cast<std::size_t>(placement.back()) * whole + tensor.bytes().size() -
         (placement.size() - 1) * whole;
}

std::size_t bytes_per_piece(const HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  std::int64_t elements = spec.piece;
  if (elements == 0) {
    elements = spec.strides.empty() ? tensor.elements() / spec.shape.front() : spec.strides.front();
  }
  return static_cast<std::size_t>(elements) * size_of(spec.dtype);
}

HostTensor& TensorSet::add(TensorSpec spec) { return add(HostTensor(std::move(spec))); }

HostTensor& TensorSet::add(HostTensor tensor) {
  if (contains(tensor.spec().name)) {
    throw std::invalid_argument(fmt::format("two tensors named {}", tensor.spec().name));
  }
  return tensors_.emplace_back(std::move(tensor));
}

const HostTensor& TensorSet::at(std::string_view name) const {
  for (const HostTensor& tensor : tensors_) {
    if (tensor.spec().name == name) return tensor;
  }
  throw std::out_of_range(fmt::format("no tensor named {}", name));
}

HostTensor& TensorSet::at(std::string_view name) {
  return const_cast<HostTensor&>(std::as_const(*this).at(name));
}

std::int64_t address_number(const TensorSet& tensors, std::string_view name) {
  const auto named = [&](const HostTensor& tensor) { return tensor.spec().name == name; };
  const std::vector<HostTensor>& all = tensors.all();
  const auto found = std::find_if(all.begin(), all.end(), named);
  if (found == all.end()) throw std::out_of_range("no tensor " + std::string(name));
  return found - all.begin() + 1;
}
bool TensorSet::contains(std::string_view name) const {
  for (const HostTensor& tensor : tensors_) {
    if (tensor.spec().name == name) return true;
  }
  return false;
}

void DeviceTensors::set(std::string name, void* address) {
  for (auto& [known, old] : addresses_) {
    if (known == name) {
      old = address;
      return;
    }
  }
  addresses_.emplace_back(std::move(name), address);
}

void* DeviceTensors::find(std::string_view name) const {
  for (const auto& [known, address] : addresses_) {
    if (known == name) return address;
  }
  return nullptr;
}

}  // namespace plumb::cases
