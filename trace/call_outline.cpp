// SPDX-License-Identifier: Apache-2.0
#include "trace/call_outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hdf5/digest.h"

namespace plumb::trace {

namespace {

bool has_all_values(const TraceTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.data.empty() && tensor.elements() != 0) return false;
  }
  return !tensors.empty();
}

// Text for digests: everything about a tensor except its place in memory.
std::string text_of(const TraceTensor& tensor) {
  std::string text =
      fmt::format("{}[{}]{}", tensor.type.name, fmt::join(tensor.shape, ","), tensor.data);
  if (tensor.blocks) text += fmt::format("blocks {}", fmt::join(*tensor.blocks, ","));
  return text;
}

std::string text_of(const TraceTensors& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) text += name + "=" + text_of(tensor) + "\n";
  return text;
}

std::string text_of(const std::map<std::string, TraceScalar>& scalars) {
  std::string text;
  for (const auto& [name, value] : scalars) {
    text += name + "=";
    std::visit([&](const auto& one) { text += fmt::format("{}\n", one); }, value);
  }
  return text;
}

}  // namespace

StepOutline outline_of(const TraceStep& step, const std::string& path) {
  StepOutline outline{.path = path,
                      .rank = step.rank,
                      .step = step.step,
                      .provenance = step.provenance,
                      .calls = {}};
  for (std::size_t i = 0; i < step.calls.size(); ++i) {
    const TraceCall& call = step.calls[i];
    CallOutline one{.place = place_of(step, i), .inputs = {}, .read = {}, .outputs = {}};
    if (has_all_values(call.before)) {
      one.inputs = hdf5::digest_of(text_of(call.before) + "\n" + text_of(call.scalars));
    }
    for (const auto& [name, tensor] : call.before) {
      one.read[name] = hdf5::digest_of(text_of(tensor));
    }
    if (has_all_values(call.after)) one.outputs = hdf5::digest_of(text_of(call.after));
    outline.calls.push_back(std::move(one));
  }
  return outline;
}

}  // namespace plumb::trace
