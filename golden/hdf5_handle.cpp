// SPDX-License-Identifier: Apache-2.0
#include "golden/hdf5_handle.h"

#include <fmt/format.h>

namespace plumb::golden {

namespace {

std::mutex hdf5_lock;

Handle copy_of(hid_t type) { return {H5Tcopy(type), H5Tclose, "a type"}; }

// 1 sign bit, 8 of exponent, 7 of mantissa: the upper half of an IEEE single.
Handle bfloat16_type() {
  Handle type = copy_of(H5T_IEEE_F32LE);
  require_success(H5Tset_fields(type, 15, 7, 8, 0, 7), "a type");
  require_success(H5Tset_size(type, 2), "a type");
  require_success(H5Tset_ebias(type, 127), "a type");
  return type;
}

}  // namespace

Handle::Handle(hid_t id, herr_t (*close)(hid_t), std::string_view what) : id_(id), close_(close) {
  if (id < 0) throw GoldenError(fmt::format("{}: not there or not readable", what));
}

void require_success(herr_t result, std::string_view what) {
  if (result < 0) throw GoldenError(fmt::format("{}: HDF5 refuses it", what));
}

Hdf5Session::Hdf5Session() : lock_(hdf5_lock) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

Handle memory_access() {
  constexpr std::size_t kGrowth = 64 << 10;
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "a property list");
  require_success(H5Pset_fapl_core(access, kGrowth, false), "memory");
  return access;
}

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
