# SPDX-License-Identifier: Apache-2.0
"""Imports single files of an unpacked vLLM wheel, without vLLM's dependencies.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/*.py' -d vllm-0.33.0
    export VLLM_FILES=$PWD/vllm-0.33.0

The modules of KERNELS come from that folder. All other modules of vLLM are dummies whose names accept any use: kernels
import few of these names and use none while they run.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
import types
from pathlib import Path

KERNELS = {
    "vllm.model_executor.kernels.mhc.torch",
    "vllm.model_executor.kernels.mhc.triton",
    "vllm.model_executor.layers.quantization.utils.fp8_utils",
    "vllm.model_executor.warmup.jit_warmup",
    "vllm.model_executor.warmup.jit_warmup_triton_helper",
    "vllm.models.common.ops.fused_qk_rmsnorm",
    "vllm.models.deepseek_v4.amd.rocm",
    "vllm.models.deepseek_v4.common.ops.cache_utils",
    "vllm.models.deepseek_v4.common.ops.fused_indexer_q",
    "vllm.models.deepseek_v4.common.ops.fused_mtp_input_rmsnorm",
    "vllm.models.deepseek_v4.sparse_mla",
    "vllm.utils.math_utils",
    "vllm.v1.attention.backends.mla.sparse_swa",
    "vllm.v1.attention.ops.common",
    "vllm.v1.attention.ops.rocm_aiter_mla_sparse",
}


def _is_decorated(arguments, more):
    return len(arguments) == 1 and callable(arguments[0]) and not more


class _AnyNames(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __getitem__(cls, key):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class Anything(metaclass=_AnyNames):
    """Accepts any use by a file of vLLM: as a class, decorator, function or constant."""

    def __new__(cls, *arguments, **more):
        return arguments[0] if cls is Anything and _is_decorated(arguments, more) else object.__new__(cls)

    def __init__(self, *arguments, **more):
        pass

    def __init_subclass__(cls, **more):
        pass

    def __call__(self, *arguments, **more):
        return arguments[0] if _is_decorated(arguments, more) else Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())


class _NvidiaPlatform(types.SimpleNamespace):
    """vLLM's current_platform for an NVIDIA card. It answers other questions with False."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **more: name in ("is_cuda", "is_cuda_alike")


class _StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        own = f"{self.__name__}.{name}"
        return importlib.import_module(own) if own in KERNELS else Anything


def _fill(module):
    if module.__name__ == "vllm.triton_utils":
        import triton
        import triton.language
        from triton.language.extra import libdevice

        module.triton, module.tl, module.tldevice, module.HAS_TRITON = triton, triton.language, libdevice, True
        module.LOG2E, module.LOGE2 = 1.4426950408889634, 0.6931471805599453
    elif module.__name__ == "vllm.platforms":
        module.current_platform = _NvidiaPlatform()
    elif module.__name__ == "vllm.utils.import_utils":
        module.has_cutedsl = lambda: False
    elif module.__name__ == "vllm.logger":
        module.init_logger = logging.getLogger


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, root):
        self.root = Path(root)

    def find_spec(self, name, path=None, target=None):
        if name != "vllm" and not name.startswith("vllm."):
            return None
        if name in KERNELS:
            file = self.root.joinpath(*name.split(".")).with_suffix(".py")
            if not file.exists():
                raise ImportError(f"{file} is not there: VLLM_FILES names a folder with vLLM's wheel unpacked")
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = _StandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        _fill(module)


def use(folder=None):
    """After this call, `import vllm…` takes files of `folder`, or of VLLM_FILES."""
    folder = folder or os.environ.get("VLLM_FILES")
    if not folder:
        raise ImportError("VLLM_FILES has to name a folder with vLLM's wheel unpacked")
    sys.meta_path.insert(0, _Finder(folder))
