// SPDX-License-Identifier: Apache-2.0
#include "decode/models/linear.h"

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

// FNV-1a: each projection its own matrix.
std::uint64_t seed_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

std::string layer_name(std::size_t layer, const char* what) {
  return "layer " + std::to_string(layer) + " " + what;
}

void linear(const StepContext& step, const std::string& name, const void* in,
            std::int64_t in_columns, void* out, std::int64_t out_columns, plumb_format out_format) {
  step.call("linear_map", name,
            plumb_linear_map_params{.in = in,
                                    .out = out,
                                    .rows = step.tokens,
                                    .in_columns = in_columns,
                                    .out_columns = out_columns,
                                    .in_format = PLUMB_BF16,
                                    .out_format = out_format,
                                    .seed = seed_of(name),
                                    .stream = nullptr});
}

}  // namespace plumb::device::decode
