// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a case on the host: shape, strides, and the bytes of the whole extent, gaps included,
// so that what a kernel writes between rows is seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::cases {

// Memory that is zero when it comes and costs nothing until it is touched: shapes are often asked
// for without the values.
template <class T>
struct ZeroedAllocator {
  using value_type = T;
  T* allocate(std::size_t count) {
    if (void* memory = std::calloc(count, sizeof(T))) return static_cast<T*>(memory);
    throw std::bad_alloc();
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  void construct(T*) {}
  bool operator==(const ZeroedAllocator&) const { return true; }
};
using Bytes = std::vector<std::byte, ZeroedAllocator<std::byte>>;

enum class Dtype { u8, i32, i64, bf16, f32 };
std::size_t size_of(Dtype dtype);
std::string_view name_of(Dtype dtype);

enum class Role {
  input,    // must come back unchanged
  output,   // poisoned before every launch, judged after it
  scratch,  // poisoned before every launch; judged where the op names it a visible intermediate
  state     // survives from launch to launch (a tile plan); judged like an output
};

// Some places of one dimension of a larger tensor. Reports number rows as they are there.
struct Excerpt {
  std::size_t dimension = 0;
  std::vector<std::int64_t> places = {};  // in the larger tensor, ascending
  std::int64_t size = 0;                  // of the dimension there
};

// Whose bytes a tensor was made of that stands for one verdict only.
struct Origin {
  std::string tensor;
  std::function<std::int64_t(std::int64_t row, std::int64_t column)> bit =
      {};         // where an element starts there
  int width = 0;  // bits of an element there; 0: as many as here
  std::uint64_t (*encode)(std::uint64_t bits) = nullptr;  // as it stands there; null: as here
};

struct Clues;

struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements; empty = contiguous
  Role role = Role::input;
  // A tensor too large to hold: the host's pieces of it lie side by side, and piece i stands at
  // piece placement[i] of a sparse region on the device, placement.back() + 1 pieces long.
  bool sparse = false;
  std::int64_t piece = 0;                    // elements; 0: a row of the first dimension
  std::vector<std::int64_t> placement = {};  // ascending
  // An output that an op updates in place: before every launch it holds, instead of poison, the
  // bytes of this input, which has the same dtype, shape, strides and placement.
  std::string starts_as = {};
  // What bytes stand for, and where the scales of codes are: "e4m3fn" and "scales, one of 128". For
  // readers of stored results.
  std::string format = "number", scale_layout = "none";
  std::optional<Excerpt> excerpt = {};
  std::shared_ptr<const Origin> origin = {};
  std::shared_ptr<const Clues> clues = {};  // of what a launch stored; null: nothing is known
};

class HostTensor {
 public:
  // Throws BadRow for one that this machine's memory cannot hold.
  explicit HostTensor(TensorSpec spec);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;
  // A tensor on the same bytes.
  HostTensor alias() const;
  // The same under another description. Throws std::invalid_argument if that has other bytes.
  HostTensor alias(TensorSpec spec) const;

  const TensorSpec& spec() const { return spec_; }
  std::int64_t elements() const;  // product of the shape
  std::int64_t extent() const;    // elements from the first to the last, gaps included
  std::int64_t rows() const;      // elements() / columns()
  std::int64_t columns() const;   // the last dimension; 1 for a scalar
  std::int64_t row_offset(std::int64_t row) const;  // element offset of a row of the last dimension
  // "[3, 0, 17]", in the tensor that this one is an excerpt of.
  std::string coordinates(std::int64_t row, std::int64_t column) const;
  // A row as that tensor numbers it, and how many it has. Its own, if it is an excerpt of none.
  std::int64_t original_row(std::int64_t row) const;
  std::int64_t original_rows() const;

  Bytes& bytes() { return *bytes_; }
  const Bytes& bytes() const { return *bytes_; }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_->data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_->data());
  }
  template <class T>
  T* row(std::int64_t r) {
    return data<T>() + row_offset(r);
  }
  template <class T>
  const T* row(std::int64_t r) const {
    return data<T>() + row_offset(r);
  }
  // Element as a double: decoded bf16, converted integer.
  double value(std::int64_t row, std::int64_t column) const;

 private:
  std::vector<std::int64_t> place_of(std::int64_t row, std::int64_t column) const;

  TensorSpec spec_;
  bool contiguous_ = false;
  std::shared_ptr<Bytes> bytes_;
};

// The elements in row-major order, gaps left out.
template <class T>
std::vector<T> packed(const HostTensor& tensor) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(tensor.elements()));
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const T* const first = tensor.row<T>(row);
    values.insert(values.end(), first, first + tensor.columns());
  }
  return values;
}

// On all cores, where there are enough of them.
bool same_bytes(const std::byte* a, const std::byte* b, std::size_t bytes);

// In elements, of a tensor without gaps.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape);

// Bytes that a tensor takes on the device.
std::size_t device_bytes(const HostTensor& tensor);
// Of TensorSpec::piece.
std::size_t bytes_per_piece(const HostTensor& tensor);

// move(byte offset on the device, byte offset on the host, bytes) for each piece of a tensor: one,
// or those of a sparse one.
void for_each_piece(const HostTensor& tensor, const auto& move) {
  const std::vector<std::int64_t>& placement = tensor.spec().placement;
  if (placement.empty()) return move(std::size_t{0}, std::size_t{0}, tensor.bytes().size());
  const std::size_t whole = bytes_per_piece(tensor);
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const std::size_t here = i * whole;
    move(static_cast<std::size_t>(placement[i]) * whole, here,
         std::min(whole, tensor.bytes().size() - here));
  }
}

// The tensors of a problem, by name. Order is the order of declaration.
class TensorSet {
 public:
  HostTensor& add(TensorSpec spec);
  HostTensor& add(HostTensor tensor);
  HostTensor& at(std::string_view name);
  const HostTensor& at(std::string_view name) const;
  bool contains(std::string_view name) const;
  std::vector<HostTensor>& all() { return tensors_; }
  const std::vector<HostTensor>& all() const { return tensors_; }

 private:
  std::vector<HostTensor> tensors_;
};

// What wrong rows of stored tensors may hold. A report says so; no verdict depends on it.
struct Clues {
  std::uint8_t poison = 0;               // the byte that outputs held before the launch
  std::vector<HostTensor> offsets = {};  // integer inputs: "row_starts"
  struct EarlierStep {
    std::string name;  // "step 2"
    TensorSet stored;  // outputs
  };
  std::vector<EarlierStep> earlier = {};
};

// Device addresses of a TensorSet, by name; nullptr for a name that the set lacks (optional).
class DeviceTensors {
 public:
  void set(std::string name, void* address);
  template <class T>
  T* get(std::string_view name) const {
    return static_cast<T*>(find(name));
  }

 private:
  void* find(std::string_view name) const;
  std::vector<std::pair<std::string, void*>> addresses_;
};

}  // namespace plumb::cases
