// SPDX-License-Identifier: Apache-2.0
//
// Makes numpy arrays that own their values.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace plumb::python {

template <class T>
nanobind::object array_of(std::vector<T> values, const std::vector<std::size_t>& shape) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = kept->data();
  nanobind::capsule owner(kept.release(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::cast(
      nanobind::ndarray<nanobind::numpy, T>(data, shape.size(), shape.data(), owner));
}

}  // namespace plumb::python
