// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/decode_mutants.h"

#include <stdexcept>
#include <string>

#include "plumb_decode_mutant_list.h"

namespace plumb::device {
#define PLUMB_DECLARE_MUTANT(name, op) \
  namespace mutant_##name {            \
    device::OpEntry op();              \
  }                                    \
  namespace cuda_mutant_##name {       \
    device::OpEntry op();              \
  }
PLUMB_FOR_EACH_DECODE_MUTANT(PLUMB_DECLARE_MUTANT)
#undef PLUMB_DECLARE_MUTANT
}  // namespace plumb::device

namespace plumb::cases {

Replacement decode_mutant(std::string_view name) {
#ifdef PLUMB_CUDA_MUTANTS
#define PLUMB_CUDA_MUTANT(mutant, op) device::cuda_mutant_##mutant::op()
#else
#define PLUMB_CUDA_MUTANT(mutant, op) \
  device::OpEntry {}
#endif
#define PLUMB_DECODE_MUTANT(mutant, op) \
  if (name == #mutant) return {device::mutant_##mutant::op(), PLUMB_CUDA_MUTANT(mutant, op)};
  PLUMB_FOR_EACH_DECODE_MUTANT(PLUMB_DECODE_MUTANT)
#undef PLUMB_DECODE_MUTANT
#undef PLUMB_CUDA_MUTANT
  throw std::invalid_argument("no mutant with DECODE: " + std::string(name));
}

}  // namespace plumb::cases
