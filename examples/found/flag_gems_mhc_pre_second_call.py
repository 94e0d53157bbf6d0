# SPDX-License-Identifier: Apache-2.0
"""FlagGems 5.0.2 (flag-gems): mhc_pre raises an error at its second call with the same fn, if fn needs no gradient
and torch.no_grad() is on.

    pip download --no-deps flag-gems==5.0.2 && unzip -q flag_gems-5.0.2-*.whl '*.py' -d flag_gems-5.0.2
    TRITON_INTERPRET=1 python flag_gems_mhc_pre_second_call.py flag_gems-5.0.2
"""

import importlib.util
import sys

import torch

file = f"{sys.argv[1]}/flag_gems/fused/mhc/mhc_pre.py"
spec = importlib.util.spec_from_file_location("mhc_pre", file)
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
fn = torch.randn(24, 256)
with torch.no_grad():
    module._get_fn_bf16_cached(fn)  # called by mhc_pre
    print("first call: right")
    try:
        module._get_fn_bf16_cached(fn)  # the same tensor: a WeakKeyDictionary compares it with ==
    except RuntimeError as error:
        sys.exit(f"second call: {error}")
