// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/right_outputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cases/judge/right_values.h"

namespace plumb::cases {

namespace {

// Aliases of the inputs, and outputs that hold zeros, or the input that they start as.
TensorSet with_plain_outputs(const TensorSet& tensors) {
  TensorSet set;
  for (const HostTensor& tensor : tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    HostTensor& added = set.add(spec.role == Role::input ? tensor.alias() : HostTensor(spec));
    if (spec.role == Role::input || spec.starts_as.empty()) continue;
    added.bytes() = tensors.at(spec.starts_as).bytes();
  }
  return set;
}

// Copies `outputs` into `tensors`. Returns true if any bytes changed.
bool replace_outputs(TensorSet& tensors, const TensorSet& outputs) {
  bool any = false;
  for (const HostTensor& output : outputs.all()) {
    Bytes& bytes = tensors.at(output.spec().name).bytes();
    if (bytes == output.bytes()) continue;
    any = true;
    bytes = output.bytes();
  }
  return any;
}

}  // namespace

RightOutputs right_outputs(const TensorSet& tensors, const ExpectOutputs& expect) {
  constexpr int kMostRounds = 6;
  TensorSet set = with_plain_outputs(tensors);
  RightOutputs right;
  for (int round = 0; round < kMostRounds; ++round) {
    const Expectations expectations = expect(set);
    RightValues values(set);
    for (const Expectation& one : expectations) {
      one.truth->put(*one.stored, one.promised, one.columns, values);
    }
    right.outputs = std::move(values.values());
    right.promised = std::move(values.promised());
    if (replace_outputs(set, right.outputs)) continue;
    for (const TensorReport& report : compare(expectations)) {
      if (!report.passed()) right.refused = report.failures.front();
    }
    return right;
  }
  right.refused = "the right values of the outputs depend on each other and do not settle";
  return right;
}

void write_promised(const RightOutputs& right, const std::string& output, Bytes& to) {
  const Bytes& value = right.outputs.at(output).bytes();
  const Bytes& promised = right.promised.find(output)->second;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = (to[i] & ~promised[i]) | (value[i] & promised[i]);
  }
}

}  // namespace plumb::cases
