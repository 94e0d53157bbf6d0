// SPDX-License-Identifier: Apache-2.0
//
// Random numbers and fills. Counter-based: value i of a stream is a pure function of (seed, i),
// made of integer and exactly rounded operations only, so every platform, compiler and number of
// threads sees the same bytes.
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

// Fills rows [begin, end) of the last dimension of a bf16 or f32 tensor. `real`: each row has its
// own scale of 1e-3..1e3 and one column in 64 is an outlier; the values of a row depend on (seed,
// row).
struct RealFill {
  double scale = 1;       // of a typical row
  bool vary_rows = true;  // rows of very different norm
  bool outliers = true;
};
void fill_real(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
               const RealFill& how);
// Small integers in [-most, most], never all zero in a row.
void fill_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
                   std::int64_t most);
// Padding rows [begin, end): zero, NaN, infinity, 1e30; `foreign` leaves them as they are.
void fill_dead(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
// NaN between the rows of a bf16 tensor.
void paint_gaps(HostTensor& tensor);

}  // namespace plumb::cases
