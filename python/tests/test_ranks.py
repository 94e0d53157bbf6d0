# SPDX-License-Identifier: Apache-2.0
"""Records several ranks and compares them."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np

from plumb_kernels import traces


class Distributed:
    """Collectives of two ranks, one of which runs here. The other one gives `parts[1 - rank]`."""

    ReduceOp = types.SimpleNamespace(SUM="sum", MAX="max")

    def __init__(self, rank, parts, error=0.0):
        self.rank, self.parts, self.error = rank, parts, error

    def get_process_group_ranks(self, group):
        return [0, 1] if group is None else group

    def all_reduce(self, tensor, op=None, group=None, async_op=False):
        tensor[...] = self.parts[0] + self.parts[1] + self.error

    def reduce_scatter_tensor(self, output, input, op=None, group=None, async_op=False):
        output[...] = np.split(self.parts[0] + self.parts[1], 2)[self.rank] + self.error

    def all_gather_into_tensor(self, output_tensor, input_tensor, group=None, async_op=False):
        output_tensor[...] = np.concatenate(self.parts) + self.error


def use_all(distributed, part):
    distributed.all_reduce(part.copy())
    distributed.reduce_scatter_tensor(np.empty(2, np.float32), part)
    distributed.all_gather_into_tensor(output_tensor=np.empty(8, np.float32), input_tensor=part)


class Ranks(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = os.path.join(self._folder.name, "trace")
        self.parts = [np.float32([1, 2, 3, 4]), np.float32([0.1, 0.2, 0.3, 0.4])]

    def recorded(self, use=use_all, errors=(0.0, 0.0)):
        for rank in range(2):
            distributed = Distributed(rank, self.parts, errors[rank])
            with traces.record(self.folder, lambda recorder: traces.collective_taps(recorder, distributed), rank=rank) as recorder, recorder.step():
                use(distributed, self.parts[rank])

    def judged(self):
        return traces.judge(self.folder)

    def test_right_collectives_pass(self):
        self.recorded()
        report = self.judged()
        self.assertTrue(report, report.text)
        self.assertEqual(report.summary["ranks"]["checked"], 6)
        self.assertEqual(report.summary["ranks"]["not_compared"], {})

    def test_wrong_collectives_are_found(self):
        self.recorded(errors=(0.0, 1e-3))
        report = self.judged()
        self.assertFalse(report)
        found = report.summary["ranks"]["found"]
        self.assertEqual([one["collective"] for one in found], ["all_reduce", "reduce_scatter", "all_gather"])
        self.assertEqual({one["call"].split("/")[0] for one in found}, {"1"})

    def test_what_is_no_sum_at_its_return_is_not_recorded(self):
        def use(distributed, part):
            distributed.all_reduce(part.copy(), op=distributed.ReduceOp.MAX)
            distributed.all_reduce(part.copy(), async_op=True)
            distributed.all_reduce(part.copy(), group=[0])
            distributed.all_reduce(part.copy(), op=distributed.ReduceOp.SUM)

        self.recorded(use)
        self.assertEqual(self.judged().summary["ranks"]["checked"], 2)

    def test_replicated_tensors_are_compared(self):
        for rank, last in ((0, 3.0), (1, 3.5)):
            trace = traces.Trace(self.folder, rank=rank)
            with trace.step(0) as step:
                step.call(name="hidden", layer=4, after={"x": np.float32([1, last])}, replicated=["x"])
        report = self.judged()
        self.assertFalse(report)
        self.assertIn("rank 1, step 0, call 0 of 1, layer 4: hidden, eager", report.text)
        self.assertIn("x of rank 1 differs from that of rank 0: 1 of 2 elements, the first at [1]: 3.5 and 3", report.text)

    def test_without_torch_the_taps_say_so(self):
        if "torch" in sys.modules:
            self.skipTest("torch is imported")
        with self.assertRaisesRegex(traces.BadTrace, "needs torch"):
            traces.collective_taps(None)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
    def test_two_processes_of_torch(self):
        for error in (0.0, 1.0):
            folder = os.path.join(self.folder, str(error))
            port = os.path.join(self._folder.name, f"store-{error}")
            command = [sys.executable, "-c", WORKER, folder, port, str(error)]
            ranks = [subprocess.Popen([*command, str(rank)]) for rank in range(2)]
            self.assertEqual([rank.wait() for rank in ranks], [0, 0])
            report = traces.judge(folder)
            self.assertEqual(report.summary["ranks"]["checked"], 8, report.text)
            self.assertEqual(report.passed, error == 0)


# A layer with two parts, one on each rank, and its hidden state. With an error, rank 1 changes its state.
WORKER = """
import sys, torch, torch.distributed as distributed
from plumb_kernels import traces

folder, store, error, rank = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)

class Layer:
    def forward(self, x):
        weight = torch.full((8, 8), 0.25 + rank, dtype=torch.bfloat16)
        part = x @ weight
        distributed.all_reduce(part)
        if rank == 1 and error:
            part[0, 0] += error
        whole = torch.empty((4, 8), dtype=torch.bfloat16)
        distributed.all_gather_into_tensor(whole, part)
        return part

def taps(recorder):
    described = lambda layer, x: {"name": "layer", "before": {"x": x}, "replicated": ["x", "out"]}
    return [*traces.collective_taps(recorder), traces.Tap(Layer, "forward", described, lambda out, *_: {"out": out})]

with traces.record(folder, taps, rank=distributed.get_rank) as recorder, recorder.step():
    Layer().forward(torch.arange(16, dtype=torch.bfloat16).reshape(2, 8))
distributed.destroy_process_group()
"""


if __name__ == "__main__":
    unittest.main()
