# SPDX-License-Identifier: Apache-2.0
"""Imports single files of unpacked wheels, without the other imports of their packages.

    mkdir -p released
    pip download --no-deps sglang==0.5.23 && unzip -q sglang-0.5.23-*.whl '*.py' -d released/sglang-0.5.23
    export RELEASED=$PWD/released

folder("sglang") is the folder in RELEASED whose name begins with sglang. The modules of a package that use() names come
from that folder. All other modules of the package are dummies whose names accept any use (vllm_files.Anything).
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path

from vllm_files import Anything


def folder(package):
    """Folder of the unpacked wheel of `package`, RELEASED/<package>-<version>, and its version."""
    root = os.environ.get("RELEASED")
    if not root:
        raise ImportError("RELEASED has to name a folder with unpacked wheels, one folder each: <package>-<version>")
    found = sorted(Path(root).glob(f"{package}-[0-9]*"))
    if len(found) != 1:
        raise ImportError(f"{root} has {len(found)} folders {package}-<version>, and needs one")
    return found[0], found[0].name[len(package) + 1 :]


class _StandIn(types.ModuleType):
    def __init__(self, name, taken):
        super().__init__(name)
        self.__path__ = []
        self.__dict__["_taken"] = taken

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        own = f"{self.__name__}.{name}"
        return importlib.import_module(own) if own in self.__dict__["_taken"] else Anything


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package, root, modules, values):
        self.package, self.root, self.modules, self.values = package, root, set(modules), values

    def find_spec(self, name, path=None, target=None):
        if name != self.package and not name.startswith(self.package + "."):
            return None
        if name in self.modules:
            file = self.root.joinpath(*name.split("."))
            file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
            if not file.exists():
                raise ImportError(f"{file} is not there")
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _StandIn(spec.name, self.modules | self.values.keys())

    def exec_module(self, module):
        for name, value in self.values.get(module.__name__, {}).items():
            setattr(module, name, value)


def use(package, root, modules, values=None):
    """After this call, `import package…` takes `modules` from `root`. `values`: names in dummy modules, by module."""
    sys.meta_path.insert(0, _Finder(package, Path(root), modules, values or {}))
