// SPDX-License-Identifier: Apache-2.0
#include "golden/hdf5_type.h"

namespace plumb::golden {

namespace {

using hdf5::Handle;
using hdf5::require_success;

Handle copy_of(hid_t type) { return {H5Tcopy(type), H5Tclose, "a type"}; }

// bf16 layout: 1 sign bit, 8 exponent bits, 7 mantissa bits (the upper half of an IEEE single).
Handle bfloat16_type() {
  Handle type = copy_of(H5T_IEEE_F32LE);
  require_success(H5Tset_fields(type, 15, 7, 8, 0, 7), "a type");
  require_success(H5Tset_size(type, 2), "a type");
  require_success(H5Tset_ebias(type, 127), "a type");
  return type;
}

}  // namespace

Handle type_of(cases::Dtype dtype) {
  switch (dtype) {
    case cases::Dtype::u8: return copy_of(H5T_STD_U8LE);
    case cases::Dtype::i32: return copy_of(H5T_STD_I32LE);
    case cases::Dtype::i64: return copy_of(H5T_STD_I64LE);
    case cases::Dtype::bf16: return bfloat16_type();
    case cases::Dtype::f32: return copy_of(H5T_IEEE_F32LE);
  }
  throw std::logic_error("no such dtype");
}

}  // namespace plumb::golden
