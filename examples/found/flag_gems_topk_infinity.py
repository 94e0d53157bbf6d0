# SPDX-License-Identifier: Apache-2.0
"""FlagGems 5.0.2 (flag-gems): topk returns an index twice, and values that are not in x, if x contains -inf.

The file has a second path for Triton's language extensions (TLE). HAS_TLE is False here, because released Triton has none.

    pip download --no-deps flag-gems==5.0.2 && unzip -q flag_gems-5.0.2-*.whl '*.py' -d flag_gems-5.0.2
    TRITON_INTERPRET=1 python flag_gems_topk_infinity.py flag_gems-5.0.2
"""

import contextlib
import importlib.util
import sys
import types

import torch
import triton.language

utils = types.SimpleNamespace(libentry=lambda: lambda function: function, triton_lang_extension=triton.language)
device = types.SimpleNamespace(device=lambda *_: contextlib.nullcontext())
sys.modules["flag_gems"], sys.modules["flag_gems.runtime"] = utils, types.SimpleNamespace(torch_device_fn=device)
sys.modules["flag_gems.utils"] = utils
sys.modules["flag_gems.utils.triton_version_utils"] = types.SimpleNamespace(HAS_TLE=False)
sys.modules["flag_gems.utils.limits"] = types.SimpleNamespace(get_dtype_max=None, get_dtype_min=None)
spec = importlib.util.spec_from_file_location("topk", f"{sys.argv[1]}/flag_gems/ops/topk.py")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
x = torch.tensor([[3.0, 2.0, 1.0] + [-torch.inf] * 97])
values, chosen = (made[0].tolist() for made in module.topk(x, 8))
sys.exit(f"values {values}, indices {chosen}" if len(set(chosen)) < 8 or max(chosen) > 99 or min(chosen) < 0 else 0)
