# SPDX-License-Identifier: Apache-2.0
"""Graphs of numpy functions. A launched function runs at once, or becomes a node of the graph that is being captured."""

import contextlib

import numpy as np

from plumb_kernels._trace_tensors import storage_of


class NumpyGraph:
    capturing = None

    def capture_begin(self):
        NumpyGraph.capturing, self.nodes = self, []

    def capture_end(self):
        NumpyGraph.capturing = None

    def replay(self):
        for node in self.nodes:
            node()


def launch(function, *arguments):
    if NumpyGraph.capturing is None:
        function(*arguments)
    else:
        NumpyGraph.capturing.nodes.append(lambda: function(*arguments))


class Fetch:
    def __init__(self, side):
        self.side, self.copy = side, None

    def run(self):
        if self.copy is None:
            self.copy = self.side.copy()


class NumpyGraphs:
    """Replaces plumb_kernels._cuda_graphs in tests. `freed` says which memory was freed."""

    graph_class = NumpyGraph

    def __init__(self):
        self.arenas = []
        self.freed = {}  # allocator state by pointer
        self.copies = False  # inside on_copy_stream
        self.pending = []  # fetches of the copy stream, which run as late as they may

    def arena(self, size, value):
        assert NumpyGraph.capturing is None, "memory that is allocated during a capture belongs to the graph"
        self.arenas.append(np.full(size, value, np.uint8))
        return self.arenas[-1]

    def owns(self, tensor):
        return isinstance(tensor, np.ndarray)

    def copy(self, tensor, side):
        launch(lambda: side.__setitem__(..., np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)))

    def gather(self, tensor, index, side):
        launch(lambda: side.__setitem__(..., np.ascontiguousarray(tensor[index]).reshape(-1).view(np.uint8)))

    def index(self, side):
        return side.view(np.int64)

    def write_indexes(self, indexes):
        for index, numbers in indexes:
            index[:] = numbers

    def send(self, host):
        pass

    def copied(self, host):
        return True

    @contextlib.contextmanager
    def on_copy_stream(self):
        self.copies = True
        try:
            yield
        finally:
            self.copies = False

    def mark(self):
        return list(self.pending)

    def wait_for(self, mark):
        for fetch in mark:
            fetch.run()

    def fetch(self, side):
        made = Fetch(side)
        self.pending.append(made) if self.copies else made.run()
        return made

    def wait(self):
        pass

    def fetched(self, host):
        host.run()
        return host.copy

    def storage(self, tensor):
        return storage_of(tensor).__array_interface__["data"][0]

    def expired(self, storage):
        return storage in self.freed

    def owner_of(self, tensor):
        return storage_of(tensor)

    def save(self, tensor, blocks):
        return tensor.copy() if blocks is None else tensor[blocks]

    def restore(self, tensor, blocks, saved):
        tensor[... if blocks is None else blocks] = saved

    def places(self):
        return self

    def state(self, pointer):
        return self.freed.get(pointer, "used")
