# SPDX-License-Identifier: Apache-2.0
"""Functions of torch as implementations of plumb's ops, on the CPU.

    pip install torch==2.11.0
    PYTHONPATH=build/sim/python plumb run --plugin torch_functions.py --platform sim-sm90

torch.topk compares numbers: -0 equals +0, and every NaN is above +inf.
"""

import torch
from plumb_kernels import kernel

torch.set_num_threads(1)

CHOICES = {"nan_order": "all_nan_top", "zeros": "equal"}
# Largest first. The choice among equal values is open.
ORDER = {"deterministic": 1, "index_order": "by_key", "equal_keys": "any"}


def tensor(array):
    """A torch tensor over the memory of an argument. numpy holds bf16 as uint16."""
    if array is None or isinstance(array, torch.Tensor):
        return array
    made = torch.from_numpy(array)
    return made.view(torch.bfloat16) if made.dtype == torch.uint16 else made


def select(window, k, indices):
    indices.fill_(-1)
    if len(window) <= k:
        indices[: len(window)] = torch.arange(len(window), dtype=torch.int32)
    else:
        indices.copy_(torch.topk(window, k).indices)


@kernel("rms_norm", numerics={"deterministic": 1, "chains": 16, "function_ulp": 2}, contract={"rounding": "once"}, platforms="sim-*")
def rms_norm(x, weight, out, eps):
    tensor(out).copy_(torch.nn.functional.rms_norm(tensor(x), (x.shape[-1],), tensor(weight), eps))


@kernel("top_k_per_row_prefill", numerics=ORDER, contract=CHOICES, platforms="sim-*")
def topk_prefill(logits, row_starts, row_ends, indices, k, logits_column_stride):
    columns, chosen = tensor(logits)[:, ::logits_column_stride], tensor(indices)
    for row, (start, end) in enumerate(zip(row_starts.tolist(), row_ends.tolist(), strict=True)):
        select(columns[row, start : max(start, end)], k, chosen[row])


@kernel("top_k_per_row_decode", numerics=ORDER, contract=CHOICES, platforms="sim-*")
def topk_decode(logits, seq_lens, indices, k, next_n, seq_lens_dims, logits_column_stride):
    columns, chosen = tensor(logits)[:, ::logits_column_stride], tensor(indices)
    for row in range(len(chosen)):
        request, query = divmod(row, next_n)
        length = int(seq_lens[request, query if seq_lens_dims == 2 else 0])
        end = length if seq_lens_dims == 2 else length - next_n + query + 1
        select(columns[row, : max(end, 0)], k, chosen[row])


# Elements are moved bit for bit, as integers of their size.
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def integers(array):
    made = torch.from_numpy(array)
    return made.view(INTEGERS[made.element_size()])


@kernel("pack_seq", numerics={"deterministic": 1}, platforms="sim-*")
def pad_sequence(x, lengths, out, max_length, pad_bits, sequences):
    if sequences == 0:
        return
    rows, packed = integers(x), integers(out)
    counts = lengths.reshape(-1).tolist()
    signed = packed.dtype is not torch.uint8 and pad_bits >> (8 * packed.element_size() - 1)
    pad = pad_bits - (1 << 8 * packed.element_size()) if signed else pad_bits
    # The last sequence makes the result max_length long.
    parts = [*torch.split(rows[: sum(counts)], counts), rows.new_zeros((max_length, rows.shape[1]))]
    packed.copy_(torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=pad)[:-1])


@kernel("unpack_seq", numerics={"deterministic": 1}, platforms="sim-*")
def unpad_sequence(x, lengths, out, sequences):
    if sequences:
        parts = torch.nn.utils.rnn.unpad_sequence(integers(x), torch.from_numpy(lengths.reshape(-1)), batch_first=True)
        rows = torch.cat(parts)
        integers(out)[: len(rows)] = rows
