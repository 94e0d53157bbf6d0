// SPDX-License-Identifier: Apache-2.0
//
// Host tensors of a case: shape, strides and bytes. The bytes include the gaps between rows, so
// that writes of a kernel into the gaps are detected.
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

// Allocator of zeroed memory that costs nothing until it is touched: tensors are often made for
// their shapes only.
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
  scratch,  // poisoned before every launch; judged if the op declares it a visible intermediate
  state     // survives from launch to launch (a tile plan); judged like an output
};

// A tensor that holds some indices of one dimension of a larger tensor. Reports use the larger
// tensor's row numbers.
struct Excerpt {
  std::size_t dimension = 0;
  std::vector<std::int64_t> places = {};  // indices in the larger tensor, ascending
  std::int64_t size = 0;                  // size of the dimension in the larger tensor
};

// Names the stored tensor from whose bytes a tensor was extracted for one verdict.
struct Origin {
  std::string tensor;
  // Bit offset of an element in the origin.
  std::function<std::int64_t(std::int64_t row, std::int64_t column)> bit = {};
  int width = 0;  // bits per element in the origin; 0: as many as here
  // Converts an element's bits to the origin's encoding; null: the encodings are equal.
  std::uint64_t (*encode)(std::uint64_t bits) = nullptr;
};

struct Clues;

struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements; empty: contiguous
  Role role = Role::input;
  // A tensor whose address range is too large for memory. The host holds only its pieces, one after
  // another. On the device, piece i is at piece placement[i] of a sparse region that is
  // placement.back() + 1 pieces long.
  bool sparse = false;
  // Elements per piece; 0: one row of the first dimension.
  std::int64_t piece = 0;
  std::vector<std::int64_t> placement = {};  // ascending
  // For an output that an op updates in place: the name of the input whose bytes it holds before
  // every launch, instead of poison. Both have the same dtype, shape, strides and placement.
  std::string starts_as = {};
  // For readers of stored results: what the bytes encode ("e4m3fn") and where the scales of codes
  // are ("scales, one of 128").
  std::string format = "number", scale_layout = "none";
  std::optional<Excerpt> excerpt = {};
  std::shared_ptr<const Origin> origin = {};
  std::shared_ptr<const Clues> clues = {};  // set for outputs of a launch; null: unknown
};

class HostTensor {
 public:
  // Throws BadRow if this machine's memory cannot hold the tensor.
  explicit HostTensor(TensorSpec spec);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;
  // A second tensor that shares these bytes.
  HostTensor alias() const;
  // Shares the bytes under another spec. Throws std::invalid_argument if that spec needs another
  // number of bytes.
  HostTensor alias(TensorSpec spec) const;

  const TensorSpec& spec() const { return spec_; }
  std::int64_t elements() const;  // product of the shape
  std::int64_t extent() const;    // elements from the first to the last, gaps included
  std::int64_t rows() const;      // elements() / columns()
  std::int64_t columns() const;   // the last dimension; 1 for a scalar
  // Offset in elements of a row of the last dimension.
  std::int64_t row_offset(std::int64_t row) const;
  // Coordinates as text, "[3, 0, 17]". For an excerpt, those in the larger tensor.
  std::string coordinates(std::int64_t row, std::int64_t column) const;
  // For an excerpt: a row's number, and the number of rows, in the larger tensor. Otherwise the
  // tensor's own.
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
  // An element as a double: bf16 is decoded, integers are converted.
  double value(std::int64_t row, std::int64_t column) const;

 private:
  std::vector<std::int64_t> place_of(std::int64_t row, std::int64_t column) const;

  TensorSpec spec_;
  bool contiguous_ = false;
  std::shared_ptr<Bytes> bytes_;
};

// All elements in row-major order, without gaps.
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

// Compares on all cores if there are enough bytes.
bool same_bytes(const std::byte* a, const std::byte* b, std::size_t bytes);

// Strides in elements of a tensor without gaps.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape);

// Bytes that the tensor's address range takes on the device.
std::size_t device_bytes(const HostTensor& tensor);
// Bytes of one piece (TensorSpec::piece).
std::size_t bytes_per_piece(const HostTensor& tensor);

// Calls move(byte offset on the device, byte offset on the host, bytes) for each piece. A tensor
// that is not sparse is one piece.
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

// The tensors of a problem, by name, in the order of declaration.
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

// TensorSpec::format of tensors that hold addresses. Addresses differ from run to run. A launch's
// results therefore hold the address_number() of a tensor in place of its address.
inline constexpr std::string_view kAddressFormat = "address";
// Place of the tensor in the set, from 1 on. Throws std::out_of_range if there is none.
std::int64_t address_number(const TensorSet& tensors, std::string_view name);

// Values that wrong rows of an output may hold by mistake. Reports use them to explain a failure;
// no verdict depends on them.
struct Clues {
  std::uint8_t poison = 0;               // byte value that outputs held before the launch
  std::vector<HostTensor> offsets = {};  // integer inputs with offsets: "row_starts"
  struct EarlierStep {
    std::string name;  // "step 2"
    TensorSet stored;  // outputs of that step
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
