// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_fused_post_pre.h"

namespace plumb::reference {

MhcFusedPostPreOutputs mhc_fused_post_pre(const MhcFusedPostPre& inputs, const Numerics& numerics) {
  MhcFusedPostPreOutputs outputs{mhc_post(inputs.post, numerics), {}};
  MhcPre pre = inputs.pre;
  if (inputs.unrounded_sums) pre.unrounded = &outputs.residual;
  outputs.partials = mhc_pre_partials(pre, numerics);
  return outputs;
}

}  // namespace plumb::reference
