// SPDX-License-Identifier: Apache-2.0
//
// mhc_fused_post_pre: mhc_post, then mhc_pre of its result in one call. For few padded tokens the
// sums of the second are of the streams before they are rounded   (operations spec, 6.5)
#pragma once

#include "reference/hyper_connection/mhc_post.h"
#include "reference/hyper_connection/mhc_pre.h"

namespace plumb::reference {

struct MhcFusedPostPre {
  MhcPost post;
  MhcPre pre;  // pre.residual: the streams that a device stored
  bool unrounded_sums = false;
};

struct MhcFusedPostPreOutputs {
  Estimate residual;  // bf16, rows token * 4 + n, `hidden` columns
  MhcPrePartials partials;
};

// The outputs are mhc_pre_outputs of `pre` and of these partials, or of those that a device stored.
MhcFusedPostPreOutputs mhc_fused_post_pre(const MhcFusedPostPre& inputs, const Numerics& numerics);

}  // namespace plumb::reference
