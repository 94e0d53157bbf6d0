// SPDX-License-Identifier: Apache-2.0
//
// mhc_fused_post_pre: mhc_post, then mhc_pre of its result in one call. With few padded tokens the
// sums of mhc_pre are over the streams before these are rounded (operations spec, 6.5).
#pragma once

#include "reference/hyper_connection/mhc_post.h"
#include "reference/hyper_connection/mhc_pre.h"

namespace plumb::reference {

struct MhcFusedPostPre {
  MhcPost post;
  MhcPre pre;  // pre.residual: the streams that a kernel stored
  bool unrounded_sums = false;
};

struct MhcFusedPostPreOutputs {
  Estimate residual;  // bf16 [tokens * 4, hidden], row token * 4 + n
  MhcPrePartials partials;
};

// The other outputs come from mhc_pre_outputs of `pre` with these partials, or with partials that a
// kernel stored.
MhcFusedPostPreOutputs mhc_fused_post_pre(const MhcFusedPostPre& inputs, const Numerics& numerics);

}  // namespace plumb::reference
