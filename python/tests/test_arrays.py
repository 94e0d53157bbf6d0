# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages, each where it is installed: python -m unittest discover python/tests"""

import importlib.util
import unittest

import numpy as np
import plumb_kernels as plumb

RANDOM = np.random.default_rng(5)


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"no {package} here")


class OnlyDLPack:
    """An array that supports only the DLPack protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Foreign(unittest.TestCase):
    def setUp(self):
        self.x = plumb.bf16(RANDOM.standard_normal((4, 512)))
        self.out = plumb.reference("rms_norm", x=self.x)["out"].stored
        self.q = plumb.reference("per_token_group_quant_fp8", x=self.x, filler="0")

    def judges(self, wrap):
        """Right rows pass and a wrong one is found, with any strides."""
        wide = np.zeros((8, 1024), np.uint16)
        wide[::2, ::2] = self.out
        for out in (wrap(self.out), wrap(wide)[::2, ::2]):
            self.assertTrue(plumb.judge("rms_norm", x=wrap(self.x), out=out))
        wide[4, 6] ^= 0x0100
        self.assertEqual(plumb.judge("rms_norm", x=wrap(self.x), out=wrap(wide)[::2, ::2])["out"].wrong_rows, [2])

    def judges_fp8(self, wrap):
        others = {name: one.stored for name, one in self.q.items() if name != "q"}
        q = self.q["q"].stored
        self.assertTrue(plumb.judge("per_token_group_quant_fp8", x=self.x, q=wrap(q), filler="0", **others))
        q[1, 3] ^= 0x10
        self.assertFalse(plumb.judge("per_token_group_quant_fp8", x=self.x, q=wrap(q), filler="0", **others))

    def test_any_array_that_speaks_dlpack(self):
        self.assertTrue(plumb.judge("rms_norm", x=OnlyDLPack(self.x), out=OnlyDLPack(self.out)))
        self.out[3, 3] ^= 0x0100
        self.assertFalse(plumb.judge("rms_norm", x=OnlyDLPack(self.x), out=OnlyDLPack(self.out)))

    @needs("ml_dtypes")
    def test_numpy_with_ml_dtypes(self):
        import ml_dtypes

        self.judges(lambda bits: bits.view(ml_dtypes.bfloat16))
        self.judges_fp8(lambda bits: bits.view(ml_dtypes.float8_e4m3fn))

    @needs("torch")
    def test_torch(self):
        import torch

        self.judges(lambda bits: torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16))
        self.judges_fp8(lambda bits: torch.from_numpy(bits).view(torch.float8_e4m3fn))
        learned = torch.ones(512, dtype=torch.bfloat16, requires_grad=True)
        self.assertTrue(plumb.judge("rms_norm", x=self.x, weight=learned, out=self.out))

    @needs("jax")
    def test_jax(self):
        import jax.numpy

        self.judges(lambda bits: jax.numpy.asarray(bits).view(jax.numpy.bfloat16))
        self.judges_fp8(lambda bits: jax.numpy.asarray(bits).view(jax.numpy.float8_e4m3fn))


if __name__ == "__main__":
    unittest.main()
