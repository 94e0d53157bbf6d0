# SPDX-License-Identifier: Apache-2.0
"""Records vLLM 0.22.1's engine with a tiny DeepSeek-V4 on a Hopper GPU (vllm_gpu_engine.py, vllm_gpu_taps.py).

    python record_vllm_gpu.py recording                            # decode steps in broken graphs; then: plumb judge recording
    python record_vllm_gpu.py recording --shadow                   # compares each graphed step with the same step run eagerly
    python record_vllm_gpu.py recording --mode v2                  # full graphs
    python record_vllm_gpu.py recording --mode v2 --fault plan     # undoes vLLM's #42444
    python record_vllm_gpu.py recording --shadow --fault narrow    # narrows the eager region as #51430 did
"""

import argparse
import contextlib
import os
import sys
import time
import traceback

import vllm_gpu_engine as engine

FAULTS = ("none", "plan", "narrow")
SMALL_STEP = 64  # steps with more tokens are not recorded


def break_engine(fault):
    """Call it after engine.prepare and before the model is imported."""
    if fault == "plan":
        # #42444: the warm-up and the capture had one plan, so the capture did not record the planner.
        from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager

        fresh = "                        forward_fn, attn_state = create_forward_fn(desc)\n"
        edited = engine.edited(CudaGraphManager.capture, fresh[4:], "")
        CudaGraphManager.capture = edited
    if fault == "narrow":
        # #51430: only top-k and attention run eagerly between the graphs, no longer all of the attention module. A graph can be
        # broken on its own stream only, so the module's functions run one after another.
        from vllm.compilation import breakable_cudagraph as breakable

        decorate = breakable.eager_break_during_capture
        breakable.eager_break_during_capture = lambda function: function if function.__name__ == "deepseek_v4_attention" else decorate(function)
        from vllm.models.deepseek_v4 import attention

        attention.execute_in_parallel = lambda first, others, *_, **__: (first(), [one and one() for one in others])
        attention.maybe_execute_in_parallel = lambda first, other, *_: (first(), other())
        attention.DeepseekV4MLAAttention.forward = decorate(attention.DeepseekV4MLAAttention.forward)
        breakable.eager_break_during_capture = decorate


def record_steps(runner, recorder):
    """Each small step of the engine is a step of the recording."""
    execute = runner.execute_model

    def recorded(output, *more, **named):
        with recorder.step() if 0 < output.total_num_scheduled_tokens <= SMALL_STEP else contextlib.nullcontext():
            return execute(output, *more, **named)

    runner.execute_model = recorded


def shadow_pieces(runner, shadow):
    """Runs each graphed forward eagerly too, in the same forward context."""
    from vllm.compilation.breakable_cudagraph import BreakableCUDAGraphWrapper
    from vllm.forward_context import get_forward_context

    replay = BreakableCUDAGraphWrapper._replay

    def shadowed(wrapper, entry, arguments, named):
        context = get_forward_context()
        padded = context.batch_descriptor.num_tokens
        return shadow.step(lambda: replay(wrapper, entry, arguments, named), lambda: wrapper.runnable(*arguments, **named), live=runner.live, padded=padded)

    BreakableCUDAGraphWrapper._replay = shadowed
    execute = runner.execute_model

    def counted(output, *more, **named):
        runner.live = output.total_num_scheduled_tokens
        return execute(output, *more, **named)

    runner.execute_model = counted


def shadow_v2(runner, shadow):
    """Runs each full graph's forward eagerly too. Its metadata are those that the runner built for this step."""
    from vllm.config import CUDAGraphMode
    from vllm.forward_context import set_forward_context
    from vllm.v1.worker.gpu.attn_utils import build_slot_mappings_by_layer

    state, manager = {}, runner.cudagraph_manager
    prepare, replay = runner.model_state.prepare_attn, manager.run_fullgraph

    def prepared(batch, mode, tables, slots, *more):
        state.update(batch=batch, slots=slots, again=lambda: prepare(batch, mode, tables, slots, *more))
        return prepare(batch, mode, tables, slots, *more)

    def eager():
        batch = state["batch"]
        inputs = {"input_ids": batch.input_ids, "positions": batch.positions, "inputs_embeds": None}
        inputs |= runner.model_state.prepare_inputs(batch, runner.req_states)
        slots = build_slot_mappings_by_layer(state["slots"], runner.kv_cache_config)
        with set_forward_context(
            state["again"](), runner.vllm_config, num_tokens=batch.num_tokens_after_padding, cudagraph_runtime_mode=CUDAGraphMode.NONE, slot_mapping=slots
        ):
            hidden = runner.model(**inputs)
        manager.hidden_states[: len(hidden)] = hidden

    def shadowed(desc):
        batch = state["batch"]
        return shadow.step(lambda: replay(desc), eager, live=batch.num_tokens, padded=batch.num_tokens_after_padding)

    runner.model_state.prepare_attn, manager.run_fullgraph = prepared, shadowed


def state_of(runner, mode):
    """Caches, and the rows of hidden states that the sampler reads."""

    def state():
        kept = {f"cache {number}": cache for number, cache in enumerate(runner.kv_caches)}
        return kept | ({"hidden": runner.cudagraph_manager.hidden_states} if mode == "v2" else {})

    return state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a new folder")
    parser.add_argument("--mode", choices=engine.GRAPHS, default="pieces")
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--shadow", action="store_true", help="compares each graphed step with eager steps")
    parser.add_argument("--lengths", type=int, nargs="+", default=[245, 200, 130, 100, 60, 40, 30, 5], help="tokens of each prompt")
    parser.add_argument("--steps", type=int, default=24, help="tokens of each answer")
    arguments = parser.parse_args()
    begin = time.time()
    engine.prepare(arguments.mode)
    break_engine(arguments.fault)
    import torch
    from plumb_kernels import traces
    from vllm_gpu_taps import taps

    provenance = {"engine": "vllm", "version": "0.22.1", "platform": "cuda-sm90", "torch": torch.__version__, "mode": arguments.mode, "fault": arguments.fault}
    with traces.record(arguments.folder, taps, provenance=provenance, graph_bytes=2 << 30, host_bytes=8 << 30) as recorder:
        llm = engine.start(arguments.mode)
        print(f"started after {time.time() - begin:.0f} s", flush=True)
        engine.generate(llm, [40], 2)  # compiles what only real steps run
        runner = engine.runner_of(llm)
        if arguments.shadow:
            shadow = recorder.shadow(state=state_of(runner, arguments.mode))
            (shadow_v2 if arguments.mode == "v2" else shadow_pieces)(runner, shadow)
        else:
            record_steps(runner, recorder)
            engine.generate(llm, [30, 5], 2, seed=1)  # a small step with prompts
        tokens = engine.generate(llm, arguments.lengths, arguments.steps, seed=2)
        print("tokens", [one[:8] for one in tokens], flush=True)
        print(f"{recorder.graphs_without_calls} graphs without calls, {recorder.graphs.without_room} tensors without room, {time.time() - begin:.0f} s", flush=True)
    if arguments.shadow:
        print(f"{len(shadow.reports)} shadow steps, {sum(bool(one) for one in shadow.reports)} without a finding")
        print(next((one for one in shadow.reports if not one), shadow.reports[-1:]))
        return 0 if shadow.passed else 1
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except BaseException:
        traceback.print_exc()
        code = 3
    sys.stdout.flush()
    os._exit(code)  # an engine in this process keeps threads
