# SPDX-License-Identifier: Apache-2.0
"""FlagGems 5.0.2 (flag-gems): fused_add_rms_norm, "in-place" by its docstring, leaves strided tensors as they were.

    pip download --no-deps flag-gems==5.0.2 && unzip -q flag_gems-5.0.2-*.whl '*.py' -d flag_gems-5.0.2
    TRITON_INTERPRET=1 python flag_gems_fused_add_rms_norm_strided.py flag_gems-5.0.2
"""

import contextlib
import importlib.util
import sys
import types

import torch
import triton.language

device = types.SimpleNamespace(device=lambda *_: contextlib.nullcontext())
sys.modules["flag_gems"] = types.ModuleType("flag_gems")
sys.modules["flag_gems.runtime"] = types.SimpleNamespace(torch_device_fn=device)
utils = types.SimpleNamespace(libentry=lambda: lambda function: function, triton_lang_extension=triton.language)
sys.modules["flag_gems.utils"] = utils
spec = importlib.util.spec_from_file_location("norm", f"{sys.argv[1]}/flag_gems/fused/fused_add_rms_norm.py")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
x, residual = torch.randn(4, 576)[:, :512], torch.randn(4, 512)
before, total = x.clone(), x + residual
module.fused_add_rms_norm(x, residual, (512,), torch.ones(512), 1e-6)
sys.exit(f"residual is the sum: {residual.allclose(total)}; x is as it was: {x.equal(before)}" if x.equal(before) else 0)
