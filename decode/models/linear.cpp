// SPDX-License-Identifier: Apache-2.0
#include "decode/models/linear.h"

#include <array>
#include <string>
#include <string_view>

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

// Indexed by Projection. The words are part of the seed: a changed word changes the matrix.
constexpr std::array<std::string_view, 14> kIdentities{"q projection",
                                                       "kv projection",
                                                       "rope key projection",
                                                       "head projection",
                                                       "index q projection",
                                                       "index key projection",
                                                       "index weights projection",
                                                       "state projection",
                                                       "index state projection",
                                                       "output projection",
                                                       "router projection",
                                                       "experts",
                                                       "draft embedding projection",
                                                       "draft stream projection"};

// FNV-1a hash of the names of model (target or drafter), layer and projection.
std::uint64_t seed_of(const CallPlace& place, Projection projection) {
  std::string identity;
  if (place.layer >= 0) {
    identity = (place.draft ? "draft layer " : "layer ") + std::to_string(place.layer) + " ";
  }
  identity += kIdentities.at(static_cast<std::size_t>(projection));
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : identity) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

void linear(const StepContext& step, const CallPlace& place, Projection projection, const void* in,
            std::int64_t in_columns, void* out, std::int64_t out_columns, plumb_format out_format) {
  linear(step.call, step.tokens, place, projection, in, in_columns, out, out_columns, out_format);
}

void linear(const Caller& call, std::int64_t rows, const CallPlace& place, Projection projection,
            const void* in, std::int64_t in_columns, void* out, std::int64_t out_columns,
            plumb_format out_format) {
  call("linear_map", place,
       plumb_linear_map_params{.in = in,
                               .out = out,
                               .rows = rows,
                               .in_columns = in_columns,
                               .out_columns = out_columns,
                               .in_format = PLUMB_BF16,
                               .out_format = out_format,
                               .seed = seed_of(place, projection),
                               .stream = nullptr});
}

}  // namespace plumb::device::decode
