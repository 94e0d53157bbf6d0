#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.topk at the shapes of plumb's device benchmark, as JSON for `plumb bench --torch-topk`.

Same protocol as plumb bench: one CUDA graph with a launch per set of buffers, sets that together exceed
three times the L2, events around replays, median. Prints milliseconds per launch.
"""
import json
import statistics

import torch

SHAPES = {  # name of plumb's measurement: rows, columns
    "top_k_per_row_prefill": (8192, 32 << 10),
    "top_k_per_row_decode": (8192, 32 << 10),
    "top_k_per_row_decode, 256 K columns": (1024, 256 << 10),
}
K, SETS, REPETITIONS = 1024, 3, 15


def milliseconds(rows, columns):
    scores = [torch.randn(rows, columns, device="cuda") for _ in range(SETS)]
    values = [torch.empty(rows, K, device="cuda") for _ in range(SETS)]
    indices = [torch.empty(rows, K, device="cuda", dtype=torch.int64) for _ in range(SETS)]

    def launch_all():
        for s, v, i in zip(scores, values, indices):
            torch.topk(s, K, dim=-1, sorted=False, out=(v, i))

    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        launch_all()
    warm.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch_all()
    spent = []
    for _ in range(REPETITIONS + 2):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        spent.append(before.elapsed_time(after) / SETS)
    return statistics.median(spent[2:])


if __name__ == "__main__":
    print(json.dumps({name: milliseconds(*shape) for name, shape in SHAPES.items()}, indent=1))
