# SPDX-License-Identifier: Apache-2.0
#
# From a C parameter struct to a Python call. The structures mirror plumb/ops/norm.h and top_k.h;
# self_check.py compares them with the headers.
import ctypes
import importlib
import os

OK, INVALID_ARGUMENT, UNSUPPORTED, LAUNCH_FAILED = range(4)

POINTER, INT64, INT32, FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_float


def structure(*fields):
    return type("Params", (ctypes.Structure,), {"_fields_": list(fields)})


PARAMS = {
    "mtp_input_rms_norm": structure(
        ("embeds", POINTER), ("previous_hidden", POINTER), ("positions", POINTER),
        ("enorm_weight", POINTER), ("hnorm_weight", POINTER), ("out_embeds", POINTER),
        ("out_hidden", POINTER), ("tokens", INT64), ("hidden", INT64), ("hc_mult", INT64),
        ("eps", FLOAT), ("stream", POINTER)),
    "top_k_per_row_prefill": structure(
        ("logits", POINTER), ("row_starts", POINTER), ("row_ends", POINTER), ("indices", POINTER),
        ("num_rows", INT64), ("columns", INT64), ("logits_row_stride", INT64),
        ("logits_column_stride", INT64), ("k", INT32), ("stream", POINTER)),
    "top_k_per_row_decode": structure(
        ("logits", POINTER), ("seq_lens", POINTER), ("indices", POINTER), ("num_rows", INT64),
        ("columns", INT64), ("logits_row_stride", INT64), ("logits_column_stride", INT64),
        ("seq_lens_row_stride", INT64), ("seq_lens_dims", INT32), ("next_n", INT32), ("k", INT32),
        ("stream", POINTER)),
}


class Unsupported(Exception):
    """Legal, but not done here: plumb skips the case."""


def one_line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())


def launch(op, address, simulated):
    """The status as a digit, and why."""
    try:
        kernels = importlib.import_module(os.environ.get("PLUMB_PYTHON_KERNELS", "kernels"))
        if kernels.SIMULATED != bool(simulated):
            raise Unsupported("these kernels are for " +
                              ("simulated" if kernels.SIMULATED else "real") + " devices")
        getattr(kernels, op)(PARAMS[op].from_address(address))
    except Unsupported as error:
        return f"{UNSUPPORTED}{error}"
    except BaseException as error:  # nothing may pass into C
        return f"{LAUNCH_FAILED}{one_line(error)}"
    return str(OK)
