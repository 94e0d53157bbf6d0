// SPDX-License-Identifier: Apache-2.0
//
// Host references of the placeholder kernels of a decode step
// (device/kernels/placeholders/placeholder_kernels.h). They are exact, so all bits are compared.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tensors/tensor.h"
#include "decode/recording/call_record.h"

namespace plumb::cases {

class PlaceholderReference {
 public:
  virtual ~PlaceholderReference() = default;
  virtual TensorSet make_tensors() const = 0;
  virtual std::vector<Binding> bindings() const = 0;
  virtual Expectations expect(const TensorSet& tensors) const = 0;
  // Number of independent rows, and a reference with another number of rows. 0 and nullptr: the
  // rows depend on each other.
  virtual std::int64_t rows() const { return 0; }
  virtual std::unique_ptr<PlaceholderReference> with_rows(std::int64_t) const { return nullptr; }
};

bool is_placeholder(std::string_view op);
std::unique_ptr<PlaceholderReference> make_placeholder_reference(const device::decode::Call& call);

}  // namespace plumb::cases
