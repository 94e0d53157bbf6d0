# SPDX-License-Identifier: Apache-2.0
"""A small decode engine in torch and Triton, with graphs and metadata like a large one.

Requests have pages of an fp8 cache per layer. A step writes one key per request, selects keys by score, attends
to them, and routes. The modes are "eager", "piecewise" (attention stays eager) and "full". Graphs are captured for
each padded batch size and width of the scores when first needed. Eager steps make new metadata. Graphs read metadata
in buffers with fixed addresses. FAULTS lists errors that can be planted in this.
"""

import dataclasses

import small_engine_kernels as kernels
import torch
from small_engine_requests import Config, Requests

FAULTS = {
    "metadata_allocated_at_capture": "slots are a new tensor each step; the graph keeps and reads that of the capture",
    "metadata_freed": "the same, and nothing keeps the tensor of the capture",
    "coarse_graph_key": "the key of graphs lacks the width of the scores",
    "frozen_scalar": "the router's scale is an argument of the kernel, not a number in memory",
    "buffer_reused": "offsets in the workspace are those of the first size that was captured",
    "stale_slot_mapping": "slots are computed only when requests come or go",
    "fill_only_shrinks": "slots of padding are set to -1 only where the batch of the step before was larger",
    "warm_up_consumed_state": "the run in front of the capture takes a step of the requests",
    "padding_nan": "rows of padding are not written, and have the slot 0",
    "copy_skipped": "a new request's pages are not copied into the table that graphs read",
    "copy_late": "lengths are copied behind the replay",
    "branch_frozen": "a capture with short requests has the kernel for short requests alone",
    "wrong_stream": "the cache is written on a second stream, and its readers do not wait",
    "replayed_twice": "a step is replayed again",
    "eps_of_warm_up": "the epsilon of norms is larger until the first capture is over",
    "slots_of_the_capture": "slots are computed when a graph is captured, and not in front of its replays",
    "slots_of_first_step": "slots are computed at the first step alone",
    "lengths_not_copied": "pages are copied at each step, lengths only when requests come or go",
    "slots_tail_not_cleared": "rows of padding keep the slots of a larger step",
    "extent_not_updated": "slots are cleared up to the end of the step before, and a step with padding says 0",
    "padding_has_a_length": "rows of padding have a length of 1",
    "live_rows_only": "lengths and pages of live rows alone are copied",
    "scratch_of_its_own": "each step allocates a workspace; a graph keeps and uses that of its capture",
    "top_k_not_reset": "keys are chosen for as many rows as the capture had requests; the rows behind keep an earlier choice",
    "replay_does_nothing": "graphs are not replayed",
    "break_returns_fresh_tensor": "eager attention writes a new tensor at each step, and the next graph reads that of the capture",
    "break_arguments_held_weakly": "eager attention has the tensors of the latest capture, whichever graph is replayed",
    "staging_overwritten": "pages are put into the pinned buffer of the lengths before these are copied to the device",
    "inputs_rewritten_in_flight": "a second stream copies the lengths of the next step during a replay",
}
PIECEWISE_FAULTS = {"break_returns_fresh_tensor", "break_arguments_held_weakly"}


class Layer(torch.nn.Module):
    def __init__(self, number, config, cache):
        super().__init__()
        self.number, self.cache = number, cache

        def weight(*shape, dtype=torch.bfloat16):
            scale = shape[0] ** -0.5 if len(shape) > 1 else 1
            return torch.nn.Parameter((torch.randn(shape, device=config.device) * scale).to(dtype), requires_grad=False)

        hidden = config.hidden
        self.attention_norm, self.mlp_norm = weight(hidden), weight(hidden)
        self.to_q, self.to_k, self.to_out = weight(hidden, kernels.DIM), weight(hidden, kernels.DIM), weight(kernels.DIM, hidden)
        self.mlp = torch.nn.ParameterList([weight(hidden, hidden) for _ in range(config.matrices)])
        self.gate, self.bias = weight(hidden, config.experts, dtype=torch.float32), weight(config.experts, dtype=torch.float32)
        self.gain = weight(config.experts, dtype=torch.float32)
        table = torch.stack([torch.randperm(config.experts, device=config.device)[: config.topk] for _ in range(config.vocabulary)])
        self.tid2eid = torch.nn.Parameter(table.int(), requires_grad=False)


@dataclasses.dataclass
class Batch:
    """Inputs of a step's kernels other than weights and caches. Rows after the live ones are padding."""

    lengths: torch.Tensor
    table: torch.Tensor
    slots: torch.Tensor
    tokens: torch.Tensor
    scale: torch.Tensor | float
    columns: int
    short: bool  # no request has more than k keys
    x: torch.Tensor = None
    residual: torch.Tensor = None
    attended: torch.Tensor = None
    queries: dict = dataclasses.field(default_factory=dict)  # by layer: bf16, codes, scales


class Engine(Requests):
    def __init__(self, config=None, mode="full", faults=(), seed=0):
        torch.manual_seed(seed)
        super().__init__(config or Config(), seed)
        self.mode, self.faults = mode, set(faults)
        c, rows = self.config, self.config.sizes[-1]
        self.layers = [Layer(i, c, cache) for i, cache in enumerate(self.caches)]
        self.embedding = torch.nn.Parameter(torch.randn((c.vocabulary, c.hidden), device=c.device).bfloat16(), requires_grad=False)
        self.final_norm = torch.nn.Parameter(torch.ones(c.hidden, device=c.device).bfloat16(), requires_grad=False)
        # Buffers that graphs read.
        self.graph_lengths, self.graph_table = (torch.tensor(one, device=c.device) for one in (self.lengths, self.table))
        self.graph_slots = torch.full((rows,), -1, dtype=torch.int64, device=c.device)
        self.graph_scale = torch.ones(1, device=c.device)
        self.chosen = torch.full((rows, c.k), -1, dtype=torch.int32, device=c.device)
        self.workspace = self._new_workspace()
        self.graphs, self.pool = {}, torch.cuda.graph_pool_handle() if c.device == "cuda" else None
        self.side_stream = torch.cuda.Stream() if "wrong_stream" in self.faults else None
        self.cleared = self.first_size = self.rows_copied = self.extent = 0
        self.warming_up = self.dummy_run = False
        if c.device == "cuda":
            self.capture_stream, self.copy_stream = torch.cuda.Stream(), torch.cuda.Stream()
            self.staging = torch.zeros(rows * c.pages, dtype=torch.int32).pin_memory()
        if "fill_only_shrinks" in self.faults:
            self.graph_slots.zero_()

    # A step on the device.

    def step(self):
        self.eager_step() if self.mode == "eager" else self.graphed_step()

    def eager_step(self):
        n, device = self.padded, self.config.device
        lengths, table = (torch.tensor(one[:n], device=device) for one in (self.lengths, self.table))
        slots = torch.empty(n, dtype=torch.int64, device=device)
        kernels.slot_mapping(lengths, table, slots, self.live)
        short = bool(self.lengths.max() <= self.config.k)
        scale = self.scale if "frozen_scalar" in self.faults else torch.tensor([self.scale], device=device)
        batch = Batch(lengths, table, slots, self.tokens[:n], scale, self.columns, short)
        batch.residual, batch.attended = (self._empty(n, width) for width in (self.config.hidden, kernels.DIM))
        for run, _ in self.segments(batch):
            run()

    def _new_workspace(self):
        rows, hidden = self.config.sizes[-1], self.config.hidden
        return torch.zeros(rows * (hidden + hidden // 32) + 512, dtype=torch.uint8, device=self.config.device)

    def _empty(self, rows, width, dtype=torch.bfloat16):
        return torch.empty((rows, width), dtype=dtype, device=self.config.device)

    def segments(self, batch, graphed=False):
        """Parts of a step, each with whether a piecewise graph captures it."""
        for layer in self.layers:
            first = layer.number == 0
            yield (lambda layer=layer, first=first: (first and self.begin(batch, graphed), self.in_front(layer, batch, graphed))), True
            yield (lambda layer=layer: self.attention(layer, batch, graphed)), False
            yield (lambda layer=layer: self.behind(layer, batch, graphed)), True
        yield (lambda: self.finish(batch)), True

    def begin(self, batch, graphed):
        skip_padding = graphed and "padding_nan" in self.faults
        if batch.x is None or not skip_padding:
            batch.x = self._empty(len(batch.tokens), self.config.hidden)
        kernels.embed(self.embedding, batch.tokens, batch.lengths, batch.x, skip_padding)
        batch.residual.zero_()

    def in_front(self, layer, batch, graphed):
        self.fused_add_rms_norm(layer, batch.x, batch.residual, layer.attention_norm, "attention_norm")
        q, k = batch.x @ layer.to_q, batch.x @ layer.to_k
        codes, scales = self._empty(len(q), kernels.DIM, torch.uint8), self._empty(len(q), 1, torch.float32)
        self.group_quant(layer, q, codes, scales, "query_quant")
        batch.queries[layer.number] = q, codes, scales
        self.insert(layer, k, batch.slots, layer.cache, graphed)
        if self.mode == "piecewise":
            self._join_streams()

    def _join_streams(self):
        if self.side_stream is not None:
            torch.cuda.current_stream().wait_stream(self.side_stream)

    def attention(self, layer, batch, graphed):
        if graphed and "break_arguments_held_weakly" in self.faults:
            batch = self.latest_batch
        q, codes, scales = batch.queries[layer.number]
        logits = torch.full((len(q), self.config.pages * kernels.PAGE), float("-inf"), device=q.device)
        self.scores(layer, codes, scales, layer.cache, batch.table, batch.lengths, logits, batch.columns)
        keeps_rows = graphed and "top_k_not_reset" in self.faults
        indices = self.chosen[: len(q)] if keeps_rows else self._empty(len(q), self.config.k, torch.int32)
        if graphed and "branch_frozen" in self.faults and batch.short:
            self.all_positions(layer, logits, batch.lengths, indices)
        else:
            self.top_k(layer, logits, batch.lengths, indices, batch.columns)
        if graphed and "break_returns_fresh_tensor" in self.faults:
            batch.attended = self._empty(len(q), kernels.DIM)
        self.attend(layer, q, layer.cache, batch.table, indices, batch.attended)

    def behind(self, layer, batch, graphed):
        batch.x = batch.attended @ layer.to_out
        self.fused_add_rms_norm(layer, batch.x, batch.residual, layer.mlp_norm, "mlp_norm")
        q, scales = self.quantised_buffers(batch, graphed)
        self.group_quant(layer, batch.x, q, scales, "mlp_quant")
        hidden = self.mlp(layer, q, scales)
        logits = batch.x.float() @ layer.gate
        weights, ids = (torch.zeros((len(logits), self.config.topk), dtype=dtype, device=logits.device) for dtype in (torch.float32, torch.int32))
        if layer.number == 0:
            self.hash_router(layer, logits, batch.tokens, weights, ids, batch.scale)
        else:
            self.router(layer, logits, weights, ids, batch.scale)
        batch.x = self.combine(layer, hidden, weights, ids)

    def quantised_buffers(self, batch, graphed):
        """In graphs, codes and scales share one workspace."""
        n, hidden = batch.x.shape
        if not graphed:
            return self._empty(n, hidden, torch.uint8), self._empty(n, hidden // 128, torch.float32)
        rows = self.first_size if "buffer_reused" in self.faults else n
        start = rows * hidden
        scales = self.workspace[start : start + n * hidden // 32].view(torch.float32)
        return self.workspace[: n * hidden].view(n, hidden), scales.view(n, hidden // 128)

    def finish(self, batch):
        out = torch.empty_like(batch.x)
        self._join_streams()
        self.rms_norm(batch.x, self.final_norm, out)
        self.sample(out, batch.tokens)

    # Graphs.

    def graphed_step(self):
        changed = bool(self.new_rows) or self.cleared != self.live
        key = (self.padded,) if "coarse_graph_key" in self.faults else (self.padded, self.columns)
        late = "copy_late" in self.faults
        if "scratch_of_its_own" in self.faults:
            self.workspace = self._new_workspace()
        if "staging_overwritten" in self.faults:
            self._copy_by_staging()
        else:
            if not late and (changed or "lengths_not_copied" not in self.faults):
                self._copy_lengths()
            self._copy_table()
        slots = self._fill_slots(changed, key)
        self.graph_scale.fill_(self.scale)
        if key not in self.graphs:
            self.graphs[key] = self._capture(slots)
        if "replay_does_nothing" not in self.faults:
            self._replay(self.graphs[key][0])
        if late:
            self._copy_lengths()
        self.new_rows, self.cleared = [], self.live

    def _replay(self, parts):
        in_flight = "inputs_rewritten_in_flight" in self.faults
        if in_flight:
            torch.cuda._sleep(2_000_000)  # delays the device by about 1 ms
        for _ in range(1 + ("replayed_twice" in self.faults)):
            for part in parts:
                part()
        if in_flight:
            following = self.lengths + (self.lengths > 0)
            self.staging[: len(following)] = torch.from_numpy(following.clip(max=self.config.pages * kernels.PAGE))
            with torch.cuda.stream(self.copy_stream):
                self.graph_lengths.copy_(self.staging[: len(following)], non_blocking=True)

    def _copy_lengths(self):
        lengths, rows = self.lengths.copy(), len(self.lengths)
        if "padding_has_a_length" in self.faults:
            lengths[self.live :] = 1
        if "live_rows_only" in self.faults:
            rows = self.live
        self.graph_lengths[:rows].copy_(torch.from_numpy(lengths[:rows]))

    def _copy_by_staging(self):
        torch.cuda.synchronize()  # waits for copies of earlier steps
        torch.cuda._sleep(2_000_000)
        lengths = self.staging[: len(self.lengths)]
        for values, staged, target in (self.lengths, lengths, self.graph_lengths), (self.table, self.staging.view(self.table.shape), self.graph_table):
            staged.copy_(torch.from_numpy(values))
            target.copy_(staged, non_blocking=True)

    def _copy_table(self):
        first, last = 0, self.live if "live_rows_only" in self.faults else len(self.table)
        if "copy_skipped" in self.faults:  # skips rows that had a request before
            first, self.rows_copied = self.rows_copied, max(self.rows_copied, self.live)
        self.graph_table[first:last].copy_(torch.from_numpy(self.table[first:last]))

    def _fill_slots(self, changed, key):
        n = self.padded
        slots = self.graph_slots[:n]
        if self.faults & {"metadata_allocated_at_capture", "metadata_freed"}:
            # The allocator reuses the memory of the captured slots for this tensor.
            self.positions = torch.empty(n, dtype=torch.int64, device=slots.device).copy_(self.graph_lengths[:n])
            slots = torch.empty(n, dtype=torch.int64, device=slots.device)
        if "fill_only_shrinks" in self.faults:
            kernels.slot_mapping(self.graph_lengths, self.graph_table, slots[: self.live], self.live)
            self.graph_slots[self.live : max(self.live, self.cleared)] = -1
        elif self.faults & {"slots_tail_not_cleared", "extent_not_updated"}:
            kernels.slot_mapping(self.graph_lengths, self.graph_table, slots[: self.live], self.live)
            if "extent_not_updated" in self.faults:
                self.graph_slots[self.live : max(self.live, self.extent)] = -1
                self.extent = self.live if self.live == n else 0
        elif self._computes_slots(changed, key):
            kernels.slot_mapping(self.graph_lengths, self.graph_table, slots, self.live, 0 if "padding_nan" in self.faults else -1)
        return slots

    def _computes_slots(self, changed, key):
        kept = {"stale_slot_mapping": changed, "slots_of_the_capture": key not in self.graphs, "slots_of_first_step": not self.graphs}
        return all(refreshed for fault, refreshed in kept.items() if fault in self.faults)

    def _capture(self, slots):
        """Parts of a captured step: replays of graphs, with eager attention between them."""
        n = self.padded
        self.first_size = self.first_size or n
        scale = self.scale if "frozen_scalar" in self.faults else self.graph_scale
        short = bool(self.lengths.max() <= self.config.k)
        batch = Batch(self.graph_lengths[:n], self.graph_table[:n], slots, self.tokens[:n], scale, self.columns, short)
        batch.residual, batch.attended = (self._empty(n, width) for width in (self.config.hidden, kernels.DIM))
        first = torch.full((n, self.config.hidden), float("nan"), dtype=torch.bfloat16, device=self.config.device)
        batch.x = first
        self.latest_batch, self.ranked_rows = batch, self.live
        segments = list(self.segments(batch, graphed=True))
        self.warming_up = True
        self._warm_up(batch, segments)
        batch.x = first
        parts = [self._graph([run for run, _ in segments])] if self.mode == "full" else self._pieces(segments)
        self.warming_up = False
        if "metadata_freed" in self.faults:
            batch.slots = None
        return parts, batch, first

    def _warm_up(self, batch, segments):
        """Compiles the kernels. Writes no key, and restores the tokens."""
        tokens, slots = self.tokens.clone(), batch.slots.clone()
        batch.slots.fill_(-1)
        self.dummy_run = True
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for run, _ in segments:
                run()
        torch.cuda.current_stream().wait_stream(stream)
        self.dummy_run = False
        batch.slots.copy_(slots)
        if "warm_up_consumed_state" not in self.faults:
            self.tokens.copy_(tokens)

    def _graph(self, runs):
        # Unlike torch.cuda.graph, this gives no free memory back to the driver. A replay that reads freed memory then reads
        # values of other tensors, and does not fail.
        graph = torch.cuda.CUDAGraph()
        self.capture_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.capture_stream):
            graph.capture_begin(pool=self.pool)
            try:
                for run in runs:
                    run()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(self.capture_stream)
        return lambda: graph.replay()

    def _pieces(self, segments):
        parts, runs = [], []
        for run, capturable in segments:
            if capturable:
                runs.append(run)
            else:
                parts += [self._graph(runs), run]
                runs = []
        return [*parts, self._graph(runs)]

    # The ops, which the taps name.

    def fused_add_rms_norm(self, layer, x, residual, weight, name):
        kernels.fused_add_rms_norm(x, residual, weight, self.eps)

    def rms_norm(self, x, weight, out):
        kernels.rms_norm(x, weight, out, self.eps)

    @property
    def eps(self):
        return 1e-2 if "eps_of_warm_up" in self.faults and self.warming_up else self.config.eps

    def insert(self, layer, k, slots, cache, graphed=False):
        if graphed and "wrong_stream" in self.faults:
            self.side_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side_stream):
                for _ in range(60):
                    k = k + 0
                kernels.insert(k, slots, cache)
        else:
            kernels.insert(k, slots, cache)

    def scores(self, layer, codes, scales, cache, table, lengths, logits, columns):
        kernels.scores(codes, scales, cache, table, lengths, logits, columns)

    def top_k(self, layer, logits, lengths, indices, columns):
        rows = self.ranked_rows if "top_k_not_reset" in self.faults and self.warming_up else len(logits)
        kernels.top_k(logits[:rows], lengths[:rows], indices[:rows], columns)

    def all_positions(self, layer, logits, lengths, indices):
        kernels.all_positions(lengths, indices)

    def attend(self, layer, q, cache, table, indices, out):
        kernels.attend(q, cache, table, indices, out)

    def group_quant(self, layer, x, q, scales, name):
        kernels.group_quant(x, q, scales)

    def mlp(self, layer, q, scales):
        values = q.view(torch.float8_e4m3fn).float().view(*scales.shape, 128) * scales[:, :, None]
        hidden = values.view(q.shape).bfloat16()
        for matrix in layer.mlp:
            hidden = hidden @ matrix
        return hidden

    def router(self, layer, logits, weights, ids, scale):
        kernels.router(logits, layer.bias, weights, ids, scale)

    def hash_router(self, layer, logits, tokens, weights, ids, scale):
        kernels.hash_router(logits, tokens, layer.tid2eid, weights, ids, scale)

    def combine(self, layer, hidden, weights, ids):
        return (hidden.float() * (weights * layer.gain[ids.long()]).sum(-1, keepdim=True)).bfloat16()

    def sample(self, x, tokens):
        tokens.copy_((x @ self.embedding.T).argmax(-1))
