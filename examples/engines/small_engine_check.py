# SPDX-License-Identifier: Apache-2.0
"""Records the small engine on a GPU: right steps, planted faults, a broken recorder, and what recording costs.

    PLUMB_PROGRAM=build/sim/bin/plumb python small_engine_check.py clean faults copies costs --folder recordings

Ends with 0 if right steps raise no alarm, plumb's references and shadow steps find the faults, and the costs are
within their limits.
"""

import argparse
import contextlib
import gc
import json
import os
import random
import shutil
import statistics
import sys
import time

import numpy as np
import torch
from plumb_kernels import traces
from plumb_kernels._cuda_graphs import CudaGraphs
from small_engine import FAULTS, PIECEWISE_FAULTS, Config, Engine
from small_engine_taps import known_taps, unknown_taps


NOTHING_JUDGED = "no call was judged"
FASTER_THAN_FILES = "a quarter of the layers, each step written"  # its time is not limited, because the engine waits for the disk


def state_of(engine):
    return lambda: {"tokens": engine.tokens, **{f"cache {i}": cache for i, cache in enumerate(engine.caches)}}


@contextlib.contextmanager
def recording(folder, taps, engine, **options):
    shutil.rmtree(folder, ignore_errors=True)
    gc.collect()  # freeing a graph during a capture breaks the capture
    with traces.record(folder, lambda recorder: taps(engine), provenance={"engine": "small", "mode": engine.mode}, **options) as recorder:
        yield recorder


def shadowed(folder, engine, taps, steps, **schedule):
    """Runs steps of a schedule and compares each with an eager step."""
    with recording(folder, taps, engine) as recorder:
        shadow = recorder.shadow(state=state_of(engine))
        for _ in range(steps):
            engine.schedule(**schedule)
            run = engine.step if engine.mode == "eager" else engine.graphed_step
            shadow.step(run, engine.eager_step, live=engine.live, padded=engine.padded)
            if not shadow.reports[-1]:
                break
    return shadow


def judged(folder, engine, steps, rows=None, **schedule):
    with recording(folder, known_taps, engine, rows=rows) as recorder:
        for _ in range(steps):
            engine.schedule(**schedule)
            with recorder.step():
                engine.step()
    return traces.judge(folder)


def clean(folder, steps):
    """Runs right steps of each mode, once with the ops that plumb knows and once with every op unknown. No alarm may be raised."""
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
    results = {}
    for name in names or FAULTS:
        # For these faults requests start with few keys, so that they grow across a boundary.
        schedule = {"longest": {"branch_frozen": 20, "coarse_graph_key": 60}.get(name, 150)}
        wrong = {"mode": "piecewise" if name in PIECEWISE_FAULTS else "full", "faults": [name], "seed": 1}
        found = {}

        def by_reference():
            try:
                report = judged(folder, Engine(**wrong), steps, **schedule)
            except traces.BadTrace as error:
                return str(error) if NOTHING_JUDGED in str(error) else ""
            return "" if report else str(report).splitlines()[0]

        def by_shadow():
            shadow = shadowed(folder, Engine(**wrong), unknown_taps, steps, **schedule)
            return "" if shadow.passed else str(shadow.reports[-1])

        for way, find in ("reference", by_reference), ("shadow", by_shadow):
            try:
                found[way] = find()
            except Exception as error:
                found[way], found["error"] = "", f"{type(error).__name__}: {error}"
        results[name] = found
        print(f"== {name}", found["reference"] or "not by reference", found["shadow"] or "not by shadow steps", found.get("error", ""), sep="\n", flush=True)
    counts = {way: sum(bool(one[way]) for one in results.values()) for way in ("reference", "shadow")}
    print(f"of {len(results)} faults: {counts['reference']} by reference, {counts['shadow']} by shadow steps", flush=True)
    return results, all(count >= 0.9 * len(results) for count in counts.values())


def copies(folder, steps):
    """Breaks the recorder's own copies. Right engines must then look wrong."""
    copy, gather, fetched = CudaGraphs.copy, CudaGraphs.gather, CudaGraphs.fetched
    last = {}

    def late(self, fetch):
        now = fetched(self, fetch).copy()
        before = last.get(fetch.size, np.zeros_like(now))
        last[fetch.size] = now
        return before

    broken = {
        "skipped": {"copy": lambda self, tensor, side: None, "gather": lambda self, tensor, index, side: None},
        "late": {"fetched": late},
        "none": {},
    }  # fmt: skip
    results = {}
    for name, methods in broken.items():
        try:
            for method, function in methods.items():
                setattr(CudaGraphs, method, function)
            sampled = Engine(Config(sizes=(64,)), seed=2)
            results[name] = {
                "judged": judged(folder, Engine(seed=2), steps).passed, "rows": judged(folder, sampled, steps, rows=24, live=64).passed,
                "shadow": shadowed(folder, Engine(seed=2), unknown_taps, steps).passed,
            }  # fmt: skip
        finally:
            CudaGraphs.copy, CudaGraphs.gather, CudaGraphs.fetched = copy, gather, fetched
        print(name, results[name], flush=True)
    return results, all(passed == (name == "none") for name, one in results.items() for passed in one.values())


def timed(variants, rounds, steps, between=lambda: None):
    """Mean seconds per step of each variant, one number per round.

    In each round, every variant runs a block of `steps` steps, in random order. The device is idle before a block, so
    a block begins with four steps that are not timed.
    """
    times = {name: [] for name in variants}
    order, shuffled = list(variants), random.Random(0)
    for _ in range(rounds):
        shuffled.shuffle(order)
        for name in order:
            between()
            for step in range(4 + steps):
                if step == 4:
                    torch.cuda.synchronize()
                    start = time.perf_counter()
                variants[name]()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - start) / steps)
    between()
    return times


def ratio_of(times, name, base):
    """Median over the rounds, and its standard error."""
    ratios = [one / two for one, two in zip(times[name], times[base])]
    error = 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    return {"ratio": statistics.median(ratios), "error": error}


def costs(folder, layers, hidden, matrices, rounds, only):
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
            engine.tokens.cpu()  # waits for the device, as the schedule does

        return run

    captured("never recorded")
    quarter, middle = {"layers": range(0, layers, 4)}, {"layers": [layers // 2], "rows": 24}
    wanted = {
        "a quarter of the layers, 16 steps, written behind them": ({**quarter, "host_bytes": 4 << 30}, 16, 5),
        FASTER_THAN_FILES: (quarter, 48, 2),
        "a quarter of the layers, one step in 16": ({**quarter, "steps": range(0, 1 << 20, 16)}, 48, max(3, rounds // 4)),
        "24 rows of a layer, each step written": (middle, 8, 4 * rounds),  # short blocks: a busy machine slows both variants
        "24 rows of a layer, one step in 16": ({**middle, "steps": range(0, 1 << 20, 16)}, 48, rounds),
    }
    blocks = lambda: sorted({int(slot) // 64 for slot in engine.intended_slots()})
    results = {"card": torch.cuda.get_device_name(), "written": {}}
    wanted = {name: options for name, options in wanted.items() if only in name}
    for name, (options, steps, taken) in wanted.items():
        with recording(folder, lambda one: known_taps(one, blocks), engine, graph_bytes=2 << 30, **options) as recorder:
            captured(name)
            sizes = [0]

            def recorded_step():
                with recorder.step():
                    step_of(name)()

            def remove_files():
                recorder.trace.flush()
                for one in os.scandir(recorder.trace.folder) if os.path.isdir(getattr(recorder.trace, "folder", "")) else ():
                    if one.name.startswith("step"):
                        sizes.append(one.stat().st_size)
                        os.unlink(one.path)

            for _ in range(16):
                recorded_step()
            times = timed({"step": step_of("never recorded"), "written": recorded_step}, taken, steps, remove_files)
        results["written"][name] = {**ratio_of(times, "written", "step"), "bytes": sizes[-1], "left_out": recorder.graphs.without_room}
        print(name, results["written"][name], flush=True)
    captured("recorder removed")
    kept = {f"{rows}, copies only": f"{rows}, each step written" for rows in ("a quarter of the layers", "24 rows of a layer")}
    kept = {name: graph for name, graph in kept.items() if graph in graphs}
    names = {"never recorded": "never recorded", "recorder removed": "recorder removed", **kept}
    times = timed({name: step_of(graph) for name, graph in names.items()}, rounds, 48)
    results["step_ms"] = statistics.median(times["never recorded"]) * 1e3
    results["ratios"] = ratios = {name: ratio_of(times, name, "never recorded") for name in names}
    print(json.dumps(results, indent=1), flush=True)
    limits = {name: 1.01 if name.startswith("24") else 1.3 for name in wanted if name != FASTER_THAN_FILES}
    right = all(results["written"][name]["ratio"] <= limit for name, limit in limits.items())
    return results, right and abs(ratios["recorder removed"]["ratio"] - 1) < 0.005


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
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="of costs: recordings whose name contains this text")
    parser.add_argument("--json")
    given = parser.parse_args()
    parts = {
        "clean": lambda folder: clean(folder, given.steps),
        "faults": lambda folder: faults(folder, given.fault_steps, given.fault),
        "copies": lambda folder: copies(folder, 10),
        "costs": lambda folder: costs(folder, given.layers, given.hidden, given.matrices, given.rounds, given.only),
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
