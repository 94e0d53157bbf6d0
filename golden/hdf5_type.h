// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cases/tensors/tensor.h"
#include "hdf5/handle.h"

namespace plumb::golden {

// HDF5 type of stored elements. bf16 is a floating-point type with its true layout, equal to the
// type that newer HDF5 versions predefine.
hdf5::Handle type_of(cases::Dtype dtype);

}  // namespace plumb::golden
