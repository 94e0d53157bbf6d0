# SPDX-License-Identifier: Apache-2.0
"""FlagGems 5.0.2 (flag-gems): mhc_post writes contiguous rows into an output with the strides of its input.

    pip download --no-deps flag-gems==5.0.2 && unzip -q flag_gems-5.0.2-*.whl '*.py' -d flag_gems-5.0.2
    TRITON_INTERPRET=1 python flag_gems_mhc_post_layout.py flag_gems-5.0.2
"""

import importlib.util
import sys

import torch
import triton

every = triton.autotune  # the interpreter measures no times: takes the first configuration
triton.autotune = lambda configs, **more: every(configs[:1], **more)
spec = importlib.util.spec_from_file_location("mhc_post", f"{sys.argv[1]}/flag_gems/fused/mhc/mhc_post.py")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
torch.manual_seed(0)
residual = torch.randn(4, 8, 128).bfloat16().transpose(0, 1)  # streams first in memory, then tokens
x, post, comb = torch.randn(8, 128).bfloat16(), torch.rand(8, 4, 1), torch.rand(8, 4, 4)
right = module.mhc_post_ref(x, residual, post, comb).float()
wrong = ((module.mhc_post(x, residual, post, comb).float() - right).abs() > 0.1).any(2)
same = ((module.mhc_post(x, residual.contiguous(), post, comb).float() - right).abs() < 0.1).all()
sys.exit(f"{int(wrong.sum())} of 32 rows wrong; right if contiguous: {bool(same)}" if wrong.any() else 0)
