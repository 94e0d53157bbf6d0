// SPDX-License-Identifier: Apache-2.0
//
// Random numbers and fills. Counter-based: value i of a stream is a pure function of (seed, i).
// Only integer and exactly rounded operations are used, so every platform, compiler and number of
// threads produces the same bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

std::uint64_t seed_of(std::string_view text);               // XXH3 of the text
std::uint64_t mix(std::uint64_t seed, std::uint64_t salt);  // a new independent seed
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter);
double uniform(std::uint64_t seed, std::uint64_t counter);  // [0, 1), 53 bits
double normal(std::uint64_t seed, std::uint64_t counter);   // mean 0, variance 1, |x| < 6
std::int64_t integer(std::uint64_t seed, std::uint64_t counter, std::int64_t least,
                     std::int64_t most);
// An int32 that an op takes for "none" because it is negative: -1, or, if the fill is adversarial,
// often another one, down to the least.
std::int32_t negative_index(const Step& step, std::uint64_t counter);

// How fill_real fills rows [begin, end) of the last dimension of a bf16 or f32 tensor: by default
// each row has its own scale of 1e-3..1e3, and one column in 64 is an outlier. The values of a row
// depend on (seed, row) only.
struct RealFill {
  double scale = 1;       // standard deviation of a typical row
  bool vary_rows = true;  // each row has its own scale, so norms differ widely
  bool outliers = true;
};
void fill_real(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
               const RealFill& how);
// Fills with small integers in [-most, most]. Every row has at least one nonzero.
void fill_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
                   std::int64_t most);
// Fills padding rows [begin, end) with zero, NaN (signalling, so that a copy through arithmetic
// changes its bits), infinity or 1e30. `foreign` leaves the rows unchanged.
void fill_dead(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
// Writes NaN between the rows of a bf16 tensor.
void paint_gaps(HostTensor& tensor);

}  // namespace plumb::cases
