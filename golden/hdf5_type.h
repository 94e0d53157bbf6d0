// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cases/tensors/tensor.h"
#include "hdf5/handle.h"

namespace plumb::golden {

// How an element is stored. bf16 is a floating-point type with its true layout, the one that newer
// versions of HDF5 have predefined.
hdf5::Handle type_of(cases::Dtype dtype);

}  // namespace plumb::golden
