// SPDX-License-Identifier: Apache-2.0
//
// Writes the files of a trace (docs/traces.md). It is a separate module because it needs HDF5's
// shared library, which is required only for recording.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <span>
#include <string>

#include "hdf5/digest.h"
#include "trace/step_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plumb::python {

namespace {

using DenseBytes = nb::ndarray<std::uint8_t, nb::device::cpu, nb::ndim<1>, nb::c_contig, nb::ro>;

std::span<const std::byte> bytes_of(const DenseBytes& array) {
  return {reinterpret_cast<const std::byte*>(array.data()), array.size()};
}

std::string digest(const DenseBytes& array) {
  const std::span<const std::byte> bytes = bytes_of(array);
  const nb::gil_scoped_release others_run;
  return hdf5::digest_of(bytes);
}

void write(const std::string& path, const std::string& text,
           const std::map<std::string, DenseBytes>& data) {
  trace::StepData spans;
  for (const auto& [name, array] : data) spans[name] = bytes_of(array);
  const nb::gil_scoped_release others_run;
  trace::write_step_file(path, text, spans);
}

}  // namespace

}  // namespace plumb::python

NB_MODULE(_trace_file, module) {
  module.doc() = "The HDF5 files of a trace";
  nb::exception<plumb::trace::BadTrace>(module, "BadTrace", PyExc_OSError);
  module.def("digest", &plumb::python::digest, "bytes"_a, "XXH3-128 as hexadecimal digits.");
  module.def("write", &plumb::python::write, "path"_a, "text"_a, "data"_a,
             "Writes a file whole or not at all. data: bytes by digest.");
}
