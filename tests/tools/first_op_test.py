#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/first_op.md fits the source tree and costs what it says. Pages that do not are refused."""
import contextlib
import io
import unittest

import first_op

NEW = "```cpp file=reference/new.h\nint one;\n\nint two;\n```\n"
WORD = "```diff file=CMakeLists.txt\n-    router/grouped_topk router/sqrt_softplus_topk router/hash_routing\n" \
       "+    router/grouped_topk router/sqrt_softplus_topk router/hash_routing router/new\n```\n"


class FirstOp(unittest.TestCase):
    def counted(self, page):
        with contextlib.redirect_stdout(io.StringIO()):
            first_op.count(first_op.blocks_of(page))

    def refused(self, page, message):
        with self.assertRaisesRegex(first_op.PageError, message):
            self.counted(page)

    def test_the_page_fits_the_source_tree_and_its_limits(self):
        self.counted((first_op.ROOT / first_op.PAGE).read_text(encoding="utf-8"))

    def test_lines_files_and_words_are_counted(self):
        cost = first_op.cost_of(first_op.blocks_of(NEW + WORD))
        self.assertEqual(cost, {"new files": 1, "lines": 3, "words in CMake": 1})

    def test_an_op_that_costs_too_much_is_refused(self):
        self.refused("```cpp file=reference/new.h\n" + "int a;\n" * 201 + "```\n", "costs too much")
        self.refused("".join(NEW.replace("new", f"new{i}") for i in range(5)), "costs too much")

    def test_a_diff_that_does_not_fit_is_refused(self):
        self.refused(WORD.replace("hash_routing\n", "hash_rooting\n"), "found 0 times in CMakeLists.txt")
        self.refused(NEW.replace("reference/new.h", "README.md"), "README.md exists")
        self.refused(WORD.replace("CMakeLists.txt", "nowhere.txt"), "nowhere.txt does not exist")

    def test_output_that_the_page_does_not_have_is_found(self):
        blocks = first_op.blocks_of("```sh\ntrue\n```\n```text\n3 passed\n```\n")
        first_op.check_output(blocks, ["13 passed, 0 failed\n"])
        with self.assertRaisesRegex(first_op.PageError, "do not print '3 passed'"):
            first_op.check_output(blocks, ["2 passed\n"])


if __name__ == "__main__":
    unittest.main()
