// SPDX-License-Identifier: Apache-2.0
#include "hdf5/handle.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::hdf5 {

namespace {

std::mutex hdf5_lock;

}  // namespace

BadFile::BadFile(std::string what)
    : std::runtime_error([&] {
        std::replace_if(
            what.begin(), what.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
        return what;
      }()) {}

Handle::Handle(hid_t id, herr_t (*close)(hid_t), std::string_view what) : id_(id), close_(close) {
  if (id < 0) throw BadFile(fmt::format("{}: not there or not readable", what));
}

void require_success(herr_t result, std::string_view what) {
  if (result < 0) throw BadFile(fmt::format("{}: HDF5 refuses it", what));
}

// A file that is half written because the disk is full stays open inside HDF5. At the end of the
// process, HDF5 would try to write the rest, and would crash.
Hdf5Session::Hdf5Session() : lock_(hdf5_lock) {
  static const herr_t leaves_the_end_alone = H5dont_atexit();
  static_cast<void>(leaves_the_end_alone);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

Handle memory_access() {
  constexpr std::size_t kGrowth = 64 << 10;
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "a property list");
  require_success(H5Pset_fapl_core(access, kGrowth, false), "memory");
  return access;
}

}  // namespace plumb::hdf5
