#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What can be checked without a GPU: that bridge.py's structures are those of plumb's headers, and,
# where plumb and the library are given, that Python kernels run through them on a simulated platform.
#   self_check.py INCLUDE [PLUMB PLUGIN]     INCLUDE holds plumb_plugin.h
import ctypes
import os
import pathlib
import re
import subprocess
import sys

import bridge

C_TYPES = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "float": ctypes.c_float,
           "plumb_stream": ctypes.c_void_p}


def fields_of(header, op):
    """[(name, ctype)] of plumb_<op>_params."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    body = re.search(r"typedef struct plumb_%s_params \{(.*?)\}" % op, text, re.S).group(1)
    fields = []
    for declaration in body.split(";"):
        words = declaration.replace("*", " * ").replace(",", " , ").split()
        if not words:
            continue
        words = [word for word in words if word != "const"]
        names = "".join(words[1:]).split(",")
        for name in names:
            pointer = name.startswith("*")
            fields.append((name.lstrip("*"), ctypes.c_void_p if pointer else C_TYPES[words[0]]))
    return fields


def check_structures(include):
    headers = "".join((include / "ops" / name).read_text() for name in ("norm.h", "top_k.h"))
    for op, params in bridge.PARAMS.items():
        if fields_of(headers, op) != list(params._fields_):
            sys.exit(f"{op}: bridge.py has {params._fields_}, the header {fields_of(headers, op)}")
    print(f"structures of {len(bridge.PARAMS)} ops are those of the headers")


def check_calls(plumb, plugin):
    cases = ["mtp_input_rms_norm/many_positions", "top_k_per_row_decode/next_n_2",
             "top_k_per_row_prefill/ragged_two_requests"]
    command = [plumb, "run", "--plugin", plugin, "--platform", "sim-gfx942", "--json", "", "--tier",
               "smoke"]
    for case in cases:
        command += ["--case", case]
    environment = dict(os.environ, PLUMB_PYTHON_KERNELS="check_kernels", PLUMB_PYTHON=sys.executable)
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    if "no shared Python library" in finished.stdout:
        print("no shared Python library here: the calls were not tried")
        return
    if finished.returncode != 0 or " passed, 0 failed" not in finished.stdout:
        sys.exit(f"{' '.join(command)}:\n{finished.stdout}{finished.stderr}")
    print("Python kernels pass on sim-gfx942")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit("usage: self_check.py INCLUDE [PLUMB PLUGIN]")
    check_structures(pathlib.Path(sys.argv[1]))
    if len(sys.argv) == 4:
        check_calls(*sys.argv[2:])
