# SPDX-License-Identifier: Apache-2.0
"""Records the small engine on a GPU: right steps, planted faults, a broken recorder, and what recording costs.

    PLUMB_PROGRAM=build/sim/bin/plumb python small_engine_check.py clean faults copies costs --folder /tmp/recordings

Ends with 0 if right steps raise no alarm, plumb's references and shadow steps find the faults, and the costs are
within their limits.
"""

import argparse
import contextlib
import gc
import json
import os
import shutil
import statistics
import sys
import time

import torch
from plumb_kernels import traces
from plumb_kernels._cuda_graphs import CudaGraphs
from small_engine import FAULTS, Config, Engine
from small_engine_taps import known_taps, unknown_taps


def state_of(engine):
    return lambda: {"tokens": engine.tokens, **{f"cache {i}": cache for i, cache in enumerate(engine.caches)}}


@contextlib.contextmanager
def recording(folder, taps, engine, **options):
    shutil.rmtree(folder, ignore_errors=True)
    gc.collect()  # a graph that is freed during a capture breaks the capture
    with traces.record(folder, lambda recorder: taps(engine), provenance={"engine": "small", "mode": engine.mode}, **options) as recorder:
        yield recorder


def shadowed(folder, engine, taps, steps, **schedule):
    """Takes steps of a schedule, each one compared with eager."""
    with recording(folder, taps, engine) as recorder:
        shadow = recorder.shadow(state=state_of(engine))
        for _ in range(steps):
            engine.schedule(**schedule)
            run = engine.step if engine.mode == "eager" else engine.graphed_step
            shadow.step(run, engine.eager_step, live=engine.live, padded=engine.padded)
            if not shadow.reports[-1]:
                break
    return shadow


def judged(folder, engine, steps, **schedule):
    with recording(folder, known_taps, engine) as recorder:
        for _ in range(steps):
            engine.schedule(**schedule)
            with recorder.step():
                engine.step()
    return traces.judge(folder)


def clean(folder, steps):
    """Steps of each mode without an alarm: with the ops that plumb knows, and with every op declared unknown."""
    results, right = {}, True
    for mode, share in ("full", 0.6), ("piecewise", 0.4):
        engine = Engine(mode=mode, seed=len(mode))
        shadow = shadowed(folder, engine, known_taps, int(steps * share))
        report = traces.judge(folder)
        unknown = shadowed(folder + "-unknown", Engine(mode=mode, seed=len(mode) + 1), unknown_taps, int(steps * share))
        results[mode] = {
            "steps": len(shadow.reports), "shadow": shadow.passed, "judged": report.passed, "total": report.summary["total"],
            "steps_of_unknown_ops": len(unknown.reports), "shadow_of_unknown_ops": unknown.passed, "graphs": len(engine.graphs),
            "unstable": sum(one.summary["unstable_tensors"] for one in shadow.reports + unknown.reports),
        }  # fmt: skip
        print(mode, results[mode], flush=True)
        if not (shadow.passed and unknown.passed and report.passed) or report.summary["total"]["not_judged"]:
            print(shadow.reports[-1], unknown.reports[-1], report, sep="\n")
            right = False
    return results, right


def faults(folder, steps, names):
    results, right = {}, True
    for name in names or FAULTS:
        # These need requests that grow beyond the first ones.
        schedule = {"longest": {"branch_frozen": 20, "coarse_graph_key": 60}.get(name, 150)}
        found = {}

        def by_reference():
            report = judged(folder, Engine(faults=[name], seed=1), steps, **schedule)
            return "" if report else str(report).splitlines()[0]

        def by_shadow():
            shadow = shadowed(folder, Engine(faults=[name], seed=1), unknown_taps, steps, **schedule)
            return "" if shadow.passed else str(shadow.reports[-1])

        for way, find in ("reference", by_reference), ("shadow", by_shadow):
            try:
                found[way] = find()
            except Exception as error:
                found[way], found["error"] = "", f"{type(error).__name__}: {error}"
        results[name] = found
        right &= bool(found["shadow"]) and bool(found["reference"])
        print(f"== {name}", found["reference"] or "not by reference", found["shadow"] or "not by shadow steps", found.get("error", ""), sep="\n", flush=True)
    return results, right


def copies(folder, steps):
    """The recorder's own copies, broken: right engines then have to look wrong."""
    copy, gather, fetch = CudaGraphs.copy, CudaGraphs.gather, CudaGraphs.fetch
    last = {}

    def late(self, side):
        host, copied = fetch(self, side)
        before = last.get(side.data_ptr(), torch.zeros_like(host))
        last[side.data_ptr()] = host
        return before, copied

    broken = {
        "skipped": {"copy": lambda self, tensor, side: None},
        "late": {"fetch": late},
        "none": {},
    }  # fmt: skip
    results = {}
    for name, methods in broken.items():
        try:
            for method, function in methods.items():
                setattr(CudaGraphs, method, function)
            report = judged(folder, Engine(seed=2), steps)
            shadow = shadowed(folder, Engine(seed=2), unknown_taps, steps)
            results[name] = {"judged": report.passed, "shadow": shadow.passed}
        finally:
            CudaGraphs.copy, CudaGraphs.gather, CudaGraphs.fetch = copy, gather, fetch
        print(name, results[name], flush=True)
    return results, all(one["judged"] == one["shadow"] == (name == "none") for name, one in results.items())


def timed(variants, rounds):
    """Median seconds of each variant, taken in turns."""
    times = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(one) for name, one in times.items()}


def costs(folder, layers, hidden, matrices, rounds):
    config = Config(hidden=hidden, layers=layers, experts=256, sizes=(64,), matrices=matrices)
    engine = Engine(config)
    engine.schedule(live=64)
    graphs = {}

    def captured(name):
        engine.graphs = {}
        engine.graphed_step()
        graphs[name] = engine.graphs

    def step_of(name):
        def run():
            engine.graphs = graphs[name]
            engine.graphed_step()

        return run

    captured("never recorded")
    wanted = {
        "a quarter of the layers": {"layers": range(0, layers, 4)},
        "24 rows of a layer": {"layers": [layers // 2], "rows": 24},
        "24 rows of a quarter of the layers": {"layers": range(0, layers, 4), "rows": 24},
    }
    blocks = lambda: sorted({int(slot) // 64 for slot in engine.intended_slots()})
    written = {}
    for name, options in wanted.items():
        with recording(folder, lambda one: known_taps(one, blocks), engine, graph_bytes=2 << 30, **options) as recorder:
            captured(name)

            def recorded_step():
                with recorder.step():
                    step_of(name)()

            written[name] = timed({"step": step_of("never recorded"), "written": recorded_step}, max(5, rounds // 5))
        folder_of_rank = recorder.trace.folder
        last = max(one for one in os.listdir(folder_of_rank) if one.startswith("step"))
        written[name]["bytes"] = os.path.getsize(os.path.join(folder_of_rank, last))
    captured("recorder removed")
    for one in graphs:
        step_of(one)()
    times = timed({name: step_of(name) for name in graphs}, rounds)
    base = times["never recorded"]
    results = {
        "card": torch.cuda.get_device_name(), "step_ms": base * 1e3, "ratios": {name: one / base for name, one in times.items()},
        "written": {name: {"ratio": one["written"] / one["step"], "bytes": one["bytes"]} for name, one in written.items()},
    }  # fmt: skip
    print(json.dumps(results, indent=1), flush=True)
    ratios = results["ratios"]
    return results, ratios["a quarter of the layers"] <= 1.3 and ratios["24 rows of a layer"] <= 1.01 and abs(ratios["recorder removed"] - 1) < 0.005


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=["clean", "faults", "copies", "costs"])
    parser.add_argument("--folder", required=True, help="for recordings: its content is removed")
    parser.add_argument("--steps", type=int, default=1000, help="of clean")
    parser.add_argument("--fault-steps", type=int, default=60)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--layers", type=int, default=60, help="of costs")
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--matrices", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json")
    given = parser.parse_args()
    parts = {
        "clean": lambda folder: clean(folder, given.steps),
        "faults": lambda folder: faults(folder, given.fault_steps, given.fault),
        "copies": lambda folder: copies(folder, 10),
        "costs": lambda folder: costs(folder, given.layers, given.hidden, given.matrices, given.rounds),
    }
    results, right = {}, True
    for part in given.parts:
        results[part], passed = parts[part](os.path.join(given.folder, part))
        right &= passed
        print(f"{part}: {'as it should be' if passed else 'NOT as it should be'}", flush=True)
        if given.json:
            with open(given.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    return 0 if right else 1


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main())
