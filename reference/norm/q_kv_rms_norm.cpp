// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/q_kv_rms_norm.h"

#include "reference/norm/rms_norm.h"

namespace plumb::reference {

QKvRmsNormOutputs q_kv_rms_norm(const QKvRmsNormInputs& inputs, const Numerics& numerics) {
  return {rms_norm({inputs.q, inputs.q_weight, inputs.tokens, inputs.q_hidden, inputs.q_row_stride,
                    inputs.eps, inputs.rounding},
                   numerics),
          rms_norm({inputs.kv, inputs.kv_weight, inputs.tokens, inputs.kv_hidden,
                    inputs.kv_row_stride, inputs.eps, inputs.rounding},
                   numerics)};
}

}  // namespace plumb::reference
