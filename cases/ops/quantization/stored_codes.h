// SPDX-License-Identifier: Apache-2.0
//
// Parts of stored bytes as tensors of their own, for one verdict each. Each names the element that
// it came from (Origin).
#pragma once

#include <cstdint>
#include <string>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

// [rows, 2 * columns] codes of four bits from [rows, columns] bytes, the low half first.
HostTensor one_code_per_byte(const HostTensor& bytes);
// Bytes [begin, begin + columns * size) of each row of a tensor with an origin, as `columns`
// elements of `dtype`.
HostTensor bytes_as(const HostTensor& bytes, std::string name, Dtype dtype, std::int64_t begin,
                    std::int64_t columns);

}  // namespace plumb::cases
