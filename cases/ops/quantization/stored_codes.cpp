// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/quantization/stored_codes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "reference/quantization/mxfp4_quant.h"

namespace plumb::cases {

HostTensor one_code_per_byte(const HostTensor& bytes) {
  TensorSpec spec{
      .name = bytes.spec().name, .dtype = Dtype::u8, .shape = {bytes.rows(), 2 * bytes.columns()}};
  const std::shared_ptr<const Origin> of_bytes = bytes.spec().origin;
  const std::int64_t stride = bytes.spec().strides.front();
  const auto bit = [=](std::int64_t row, std::int64_t column) {
    const std::int64_t byte =
        of_bytes ? of_bytes->bit(row, column / 2) : 8 * (row * stride + column / 2);
    return byte + 4 * (column % 2);
  };
  const std::string& tensor = of_bytes ? of_bytes->tensor : bytes.spec().name;
  spec.origin = std::make_shared<const Origin>(Origin{.tensor = tensor, .bit = bit, .width = 4});
  HostTensor codes(std::move(spec));
  const auto unpacked = reference::unpack_codes(packed<std::uint8_t>(bytes));
  std::copy(unpacked.begin(), unpacked.end(), codes.data<std::uint8_t>());
  return codes;
}

HostTensor bytes_as(const HostTensor& bytes, std::string name, Dtype dtype, std::int64_t begin,
                    std::int64_t columns) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  TensorSpec spec{.name = std::move(name), .dtype = dtype, .shape = {bytes.rows(), columns}};
  const auto bit = [whole = bytes.spec().origin, begin, size](std::int64_t row,
                                                              std::int64_t column) {
    return whole->bit(row, begin + column * size);
  };
  spec.origin = std::make_shared<const Origin>(Origin{bytes.spec().origin->tensor, bit});
  HostTensor part(std::move(spec));
  for (std::int64_t row = 0; row < bytes.rows(); ++row) {
    std::memcpy(part.bytes().data() + row * columns * size, bytes.row<std::uint8_t>(row) + begin,
                static_cast<std::size_t>(columns * size));
  }
  return part;
}

}  // namespace plumb::cases
