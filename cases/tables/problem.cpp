// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/problem.h"

namespace plumb::cases {

namespace {

// Bytes that a reference writes per output element: value, sigma and worst case, or one integer.
double bytes_of_result(Dtype dtype) {
  constexpr double kEstimate = 3 * sizeof(double);
  return dtype == Dtype::f32 || dtype == Dtype::bf16 ? kEstimate : sizeof(std::int64_t);
}

}  // namespace

std::vector<TensorReport> Problem::judge(const Step& step, const TensorSet& tensors,
                                         const reference::Numerics& numerics,
                                         const plumb_numerics& declared,
                                         VerdictSeconds& seconds) const {
  const Expectations expectations = [&] {
    const Stopwatch watch(seconds.reference);
    return expect(step, tensors, numerics, declared);
  }();
  const Stopwatch watch(seconds.judge);
  return compare(expectations);
}

double reference_bytes(const TensorSet& tensors) {
  double bytes = 0;
  for (const HostTensor& tensor : tensors.all()) {
    const auto elements = static_cast<double>(tensor.elements());
    const Dtype dtype = tensor.spec().dtype;
    if (tensor.spec().role == Role::input) bytes += elements * static_cast<double>(size_of(dtype));
    if (tensor.spec().role == Role::output) bytes += elements * bytes_of_result(dtype);
  }
  return bytes;
}

double Problem::moved_bytes(const TensorSet& tensors) const {
  double bytes = 0;
  for (const HostTensor& tensor : tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role != Role::input && spec.role != Role::output) continue;
    bytes += static_cast<double>(tensor.elements()) * static_cast<double>(size_of(spec.dtype));
  }
  return bytes;
}

ReferenceWork Problem::reference_work() const { return {.bytes = reference_bytes(make_tensors())}; }

std::string batch_parameter(const OpDefinition& op, const Row& row,
                            const device::Properties& properties) {
  for (const char* name : {"tokens", "requests", "rows", "sequences"}) {
    if (!row.integers.contains(name)) continue;
    std::int64_t capacity[2];
    for (const std::int64_t size : {1, 2}) {
      Row sized = row;
      sized.integers[name] = size;
      capacity[size - 1] = op.make_problem(sized, properties)->capacity();
    }
    if (capacity[0] >= 1 && capacity[1] == 2 * capacity[0]) return name;
  }
  return "";
}

}  // namespace plumb::cases
