# SPDX-License-Identifier: Apache-2.0
"""plumb_kernels with numpy alone: python -m unittest discover python/tests"""

import unittest

import numpy as np
import plumb_kernels as plumb

RANDOM = np.random.default_rng(3)


def bf16_rows(*shape):
    return plumb.bf16(RANDOM.standard_normal(shape))


class Formats(unittest.TestCase):
    def test_bf16_rounds_to_nearest_even(self):
        numbers = [1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, np.inf, 3.4e38]
        self.assertEqual([hex(bits) for bits in plumb.bf16(numbers)], ["0x3f80", "0x3f80", "0x3f82", "0xbf80", "0x7f80", "0x7f80"])
        self.assertTrue(np.isnan(plumb.float32(plumb.bf16([np.nan]))[0]))
        self.assertEqual(plumb.float32(plumb.bf16([0.15625]))[0], 0.15625)


class Bounds(unittest.TestCase):
    def test_numerics_that_explain_anything_are_no_verdict(self):
        x, coarse = bf16_rows(2, 4096), {"accumulator": "bf16", "chains": 1}
        for out in (x, np.zeros_like(x)):
            report = plumb.judge("rms_norm", x=x, weight=None, out=out, numerics=coarse)
            self.assertFalse(report.passed)
            self.assertIn("8192 elements have no bound under these numerics: any value would pass", str(report))
            self.assertEqual(report.right_if, "")


class Ops(unittest.TestCase):
    def test_every_op_says_what_it_takes(self):
        self.assertGreaterEqual(len(plumb.ops()), 40)  # other tests add ops
        for op in plumb.ops():
            kinds = {argument.kind for argument in plumb.arguments(op)}
            self.assertLessEqual(kinds, {"input", "output", "scratch", "state", "real", "integer", "word"}, op)
            self.assertLessEqual({"input", "output", "integer"}, kinds, op)


class Judge(unittest.TestCase):
    def norm(self, x, weight, eps=1e-6):
        x, weight = plumb.float32(x), plumb.float32(weight)
        return plumb.bf16(x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(eps)) * weight)

    def test_a_right_norm_passes_and_a_wrong_row_is_named(self):
        x, weight = bf16_rows(5, 256), bf16_rows(256)
        out = self.norm(x, weight)
        report = plumb.judge("rms_norm", x=x, weight=weight, out=out)
        self.assertTrue(report.passed, report)
        self.assertLessEqual(report["out"].error_over_bound.max(), 1)
        out[3, 7] ^= 0x0100
        report = plumb.judge("rms_norm", x=x, weight=weight, out=out)
        self.assertFalse(report)
        self.assertEqual(report["out"].wrong_rows, [3])
        self.assertGreater(report["out"].error_over_bound[3, 7], 1)
        self.assertIn("1 of 5 rows (row 3)", str(report))
        with self.assertRaises(KeyError):
            report["q"]

    def test_a_report_on_nothing_does_not_pass(self):
        self.assertFalse(plumb.Report("rms_norm", []).passed)

    def test_words_are_taken(self):
        x = bf16_rows(4, 256)
        right = plumb.reference("rms_norm", x=x, rounding="twice")
        self.assertTrue(plumb.judge("rms_norm", x=x, out=right["out"].stored, rounding="twice"))

    def test_a_failure_names_the_contract_that_makes_it_right(self):
        x, weight = bf16_rows(4, 256), bf16_rows(256)
        twice = plumb.reference("rms_norm", x=x, weight=weight, rounding="twice")["out"].stored
        report = plumb.judge("rms_norm", x=x, weight=weight, out=twice)
        self.assertFalse(report.passed)
        self.assertEqual(report.right_if, "right if rounding = twice: declare it")
        self.assertIn(report.right_if, str(report))
        wrong = plumb.judge("rms_norm", x=x, weight=weight, out=np.roll(twice, 1, axis=0))
        self.assertFalse(wrong.passed)
        self.assertEqual(wrong.right_if, "")

    def test_another_eps_is_seen(self):
        x, weight = plumb.bf16(1e-3 * RANDOM.standard_normal((2, 128))), bf16_rows(128)
        out = self.norm(x, weight, 1e-5)
        self.assertTrue(plumb.judge("rms_norm", x=x, weight=weight, out=out, eps=1e-5))
        self.assertFalse(plumb.judge("rms_norm", x=x, weight=weight, out=out, eps=1e-6))

    def test_any_strides_are_read(self):
        wide, weight = bf16_rows(4, 512), bf16_rows(256)
        for x in (wide[:, ::2], wide[:, 256:], wide[::-1, :256], np.asfortranarray(wide[:, :256])):
            out = self.norm(np.ascontiguousarray(x), weight)
            self.assertTrue(plumb.judge("rms_norm", x=x, weight=weight, out=np.asfortranarray(out)))

    def test_without_an_optional_input(self):
        x = bf16_rows(3, 64)
        out = self.norm(x, plumb.bf16(np.ones(64)))
        self.assertTrue(plumb.judge("rms_norm", x=x, out=out))

    def test_what_is_changed_in_place_has_two_names(self):
        x, residual, weight = bf16_rows(3, 64), bf16_rows(3, 64), bf16_rows(64)
        right = plumb.reference("fused_add_rms_norm", x_before=x, residual_before=residual, weight=weight)
        call = dict(x_before=x, residual_before=residual, weight=weight)
        self.assertTrue(plumb.judge("fused_add_rms_norm", x=right["x"].stored, residual=right["residual"].stored, **call))
        self.assertFalse(plumb.judge("fused_add_rms_norm", x=right["x"].stored, residual=residual, **call))

    def test_selections_are_judged_as_sets(self):
        logits = RANDOM.standard_normal((4, 1000)).astype(np.float32)
        lengths = np.array([1000, 700, 513, 20], dtype=np.int32)
        indices = np.full((4, 512), -1, dtype=np.int32)
        for row, length in enumerate(lengths):
            best = np.argsort(-logits[row, :length])[:512] if length > 512 else np.arange(length)
            indices[row, : len(best)] = best
        call = dict(logits=logits, seq_lens=lengths.reshape(4, 1), next_n=1)
        self.assertTrue(plumb.judge("top_k_per_row_decode", indices=indices, **call))
        indices[1, 0] = 999
        self.assertFalse(plumb.judge("top_k_per_row_decode", indices=indices, **call))

    def test_bf16_logits_are_compared_by_their_bits(self):
        logits = plumb.bf16(RANDOM.standard_normal((2, 1000)))
        keys = np.where(logits >= 0x8000, 0x8000 - logits.astype(np.int32), logits)
        order = np.argsort(-keys, kind="stable")[:, :513].astype(np.int32)
        place = int(np.flatnonzero(np.diff(keys[0, order[0]]))[-1])  # the next key is smaller
        call = dict(logits=logits, seq_lens=np.array([[1000], [1000]], np.int32), next_n=1, k=place + 1)
        right = np.ascontiguousarray(order[:, : place + 1])
        self.assertTrue(plumb.judge("top_k_per_row_decode", indices=right, **call))
        right[0, place] = order[0, place + 1]
        self.assertFalse(plumb.judge("top_k_per_row_decode", indices=right, **call))
        starts, ends = np.zeros(2, np.int32), np.full(2, 1000, np.int32)
        made = plumb.reference("top_k_per_row_prefill", logits=logits, row_starts=starts, row_ends=ends, k=4)
        self.assertEqual(keys[1, made["indices"].stored[1]].min(), keys[1, order[1, 3]])

    def test_the_bound_is_made_of_sigma_and_the_worst_case(self):
        x = bf16_rows(4, 4096)
        x[:, 1:] = 0
        x[1:] = bf16_rows(3, 4096)
        right = plumb.reference("rms_norm", x=x)["out"]
        rounding = np.abs(right.value) * 2**-8  # rounding to bf16: at most half a unit in the last place
        errors = np.minimum(6 * right.sigma, right.worst)
        self.assertTrue((right.sigma[1:] > 0).all())
        self.assertTrue((right.sigma <= right.worst).all())
        self.assertTrue((right.bound <= errors + 1.01 * rounding + 2**-126).all())
        self.assertTrue((right.bound >= errors).all())
        rough = plumb.reference("rms_norm", x=x, numerics={"accumulator": "bf16"})["out"]
        self.assertTrue((rough.sigma[1:] > 10 * right.sigma[1:]).all())
        lists = plumb.reference("top_k_per_row_decode", logits=np.ones((1, 600), np.float32), seq_lens=np.array([[600]], np.int32), next_n=1)
        self.assertIsNone(lists["indices"].sigma)

    def test_reference_outputs_pass(self):
        x = bf16_rows(4, 64)
        right = plumb.reference("mxfp4_quant", x=x)
        self.assertEqual(right["q"].stored.shape, (4, 32))
        self.assertTrue(plumb.judge("mxfp4_quant", x=x, q=right["q"].stored, scales=right["scales"].stored))


class Refusals(unittest.TestCase):
    def refused(self, says, op, **call):
        with self.assertRaises(plumb.BadCall) as raised:
            plumb.judge(op, **call)
        self.assertIn(says, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))

    def test_they_are_one_line(self):
        x, out = bf16_rows(2, 16), bf16_rows(2, 16)
        self.refused("there is no op rms_nrom (did you mean rms_norm?)", "rms_nrom", x=x)
        self.refused("out [2, 16] is missing", "rms_norm", x=x)
        self.refused("there is no wieght (did you mean weight?)", "rms_norm", x=x, out=out, wieght=x)
        self.refused("by the other arguments it is [2, 16]", "rms_norm", x=x, out=out[:1])
        self.refused("rms_norm: x holds bf16 (its bits: uint16), not f32", "rms_norm", x=x.astype(np.float32), out=out)
        self.refused("x: no op has float64; ops have", "rms_norm", x=x.astype(np.float64), out=out)
        self.refused("x: no op has float16; ops have", "rms_norm", x=x.astype(np.float16), out=out)
        self.refused("x has the shape [16], and is [tokens, hidden]", "rms_norm", x=x[0])
        self.refused("eps is a number, not a word", "rms_norm", x=x, out=out, eps="1e-5")
        self.refused("rounding is a word of the op's, not a number", "rms_norm", x=x, out=out, rounding=1)
        self.refused("out is a tensor, not a number", "rms_norm", x=x, out=1.0)
        self.refused("there is no epsilon (did you mean eps?)", "rms_norm", x=x, out=out, epsilon=1e-5)
        self.refused("there is no output (did you mean out?)", "rms_norm", x=x, output=out)
        self.refused("an array of object", "rms_norm", x=np.array([None]), out=out)
        self.refused("x is a list", "rms_norm", x=[1, 2], out=out)
        self.refused("there is no sigma among the numerics", "rms_norm", x=x, out=out, numerics={"sigma": 1})
        self.refused("rounding is", "rms_norm", x=x, out=out, rounding="thrice")


if __name__ == "__main__":
    unittest.main()
