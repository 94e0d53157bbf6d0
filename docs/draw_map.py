#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Draws docs/map.svg, which shows the folders of the source tree and their includes. The boxes are the units of
# tests/source_tree_test.cpp, the arrows the #include lines of the files. An arrow is left out if a longer path of
# arrows implies it. `draw_map.py` writes the picture, `draw_map.py --check` fails (exit code 1) if it is out of
# date. --root names another source tree, for the test of this check.
import argparse
import html
import pathlib
import re
import sys

BOX_WIDTH, BOX_HEIGHT, ROW, GAP, PAD = 138, 34, 82, 20, 16
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(plumb/[^>]+)>)', re.M)
# Folders outside of the test's table, because they may include more than a layer does.
MORE_UNITS = {"C interface": ["include"], "Python module": ["python"]}


def units(root):
    """{name: folders} from the table of the test."""
    text = (root / "tests/source_tree_test.cpp").read_text()
    table = text[text.index("return std::vector<Unit>{"):text.index("const Unit* unit_of")]
    found = re.findall(r'\{"([^"]+)",\s*\{((?:"[^"]+"(?:,\s*)?)+)\},', table)
    if not found:
        sys.exit("draw_map.py: no units in tests/source_tree_test.cpp")
    return {name: re.findall(r'"([^"]+)"', folders) for name, folders in found} | MORE_UNITS


def unit_of(path, all_units):
    """The first unit that contains the file; device/remote comes before device."""
    return next((name for name, folders in all_units.items()
                 if any(path.startswith(folder + "/") for folder in folders)), None)


def included(path, name):
    """The included file relative to the root, as the compiler finds it from `path`."""
    if name.startswith("plumb/"):
        return "include/" + name
    if not name.startswith(".."):
        return name
    parts = list(path.parent.parts)
    for part in name.split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def edges(root, all_units):
    """{(including unit, included unit)} of all files."""
    found = set()
    for folder in sorted({f for folders in all_units.values() for f in folders}):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            relative = path.relative_to(root)
            a = unit_of(relative.as_posix(), all_units)
            for quoted, angled in INCLUDE.findall(path.read_text()):
                b = unit_of(included(relative, quoted or angled), all_units)
                if b not in (None, a):
                    found.add((a, b))
    return found


def reduced(graph):
    """The graph without edges that a longer path implies."""
    below = {}

    def reach(node, path=()):
        if node in path:
            sys.exit("draw_map.py: a circle of includes: " + " > ".join(path + (node,)))
        if node not in below:
            below[node] = set()
            for b in sorted(b for a, b in graph if a == node):
                below[node] |= {b} | reach(b, path + (node,))
        return below[node]

    for node in sorted({a for a, _ in graph}):
        reach(node)
    return {(a, b) for a, b in graph
            if not any(b in below.get(c, set()) for x, c in graph if x == a and c != b)}


def layers(nodes, arrows):
    """Rows of nodes from the bottom up. An arrow that crosses rows has a point (a tuple) in each of them."""
    height = {}

    def rank(node):
        if node not in height:
            height[node] = max((rank(b) + 1 for a, b in arrows if a == node), default=0)
        return height[node]

    rows = [[] for _ in range(max(map(rank, nodes)) + 1)]
    for node in nodes:
        rows[rank(node)].append(node)
    links = set()
    for a, b in sorted(arrows):
        chain = [a] + [(a, b, r) for r in range(height[a] - 1, height[b], -1)] + [b]
        for r, point in zip(range(height[a] - 1, height[b], -1), chain[1:-1]):
            rows[r].append(point)
        links |= set(zip(chain, chain[1:]))
    return rows, links


def place(rows, links):
    """{node: x}. Each row is sorted by the mean position of its neighbours, in a few passes up and down."""
    width = {n: (BOX_WIDTH if isinstance(n, str) else 12) for row in rows for n in row}
    x = {n: i * (BOX_WIDTH + GAP) for row in rows for i, n in enumerate(row)}
    near = {n: [] for n in width}
    for a, b in sorted(links, key=str):
        near[a].append(b)
        near[b].append(a)
    for sweep in range(24):
        for row in rows if sweep % 2 else reversed(rows):
            wish = {n: sum(x[m] for m in near[n]) / len(near[n]) if near[n] else x[n] for n in row}
            row.sort(key=lambda n: (wish[n], str(n)))
            edge, start = None, {}
            for n in row:
                left = wish[n] if edge is None else max(wish[n], edge + width[n] / 2 + GAP)
                start[n], edge = left, left + width[n] / 2
            shift = sum(wish[n] - start[n] for n in row) / len(row)
            for n in row:
                x[n] = start[n] + shift
    left = min(x[n] - width[n] / 2 for n in x)
    return {n: round(v - left + PAD) for n, v in x.items()}


def svg(all_units, rows, links, x):
    y = {n: PAD + (len(rows) - 1 - r) * ROW for r, row in enumerate(rows) for n in row}
    width = max(x[n] for n in all_units) + BOX_WIDTH // 2 + PAD
    height = len(rows) * ROW - (ROW - BOX_HEIGHT) + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">',
           '<defs><marker id="tip" markerWidth="7" markerHeight="6" refX="7" refY="3" orient="auto">'
           '<path d="M0,0 L7,3 L0,6 z" fill="#5c6370"/></marker></defs>',
           '<rect width="100%" height="100%" fill="#ffffff"/>']
    for a, b in sorted(links, key=str):
        top = y[a] + BOX_HEIGHT if isinstance(a, str) else y[a] + BOX_HEIGHT // 2
        end = y[b] if isinstance(b, str) else y[b] + BOX_HEIGHT // 2
        tip = ' marker-end="url(#tip)"' if isinstance(b, str) else ""
        bend = (top + end) // 2
        out.append(f'<path d="M{x[a]},{top} C{x[a]},{bend} {x[b]},{bend} {x[b]},{end}" fill="none" '
                   f'stroke="#5c6370"{tip}/>')
    for name, folders in all_units.items():
        label = folders[0] if len(folders) == 1 else name
        title = html.escape(f"{name}: {', '.join(folders)}")
        out.append(f'<g><title>{title}</title><rect x="{x[name] - BOX_WIDTH // 2}" y="{y[name]}" '
                   f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" fill="#eef2f7" stroke="#3b5b7e"/>'
                   f'<text x="{x[name]}" y="{y[name] + 21}" text-anchor="middle" fill="#1d2733">'
                   f'{html.escape(label)}</text></g>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    arguments = argparse.ArgumentParser(description="Draw docs/map.svg from the includes.")
    arguments.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    arguments.add_argument("--root", type=pathlib.Path,
                           default=pathlib.Path(__file__).resolve().parent.parent)
    given = arguments.parse_args()
    all_units = units(given.root)
    arrows = reduced(edges(given.root, all_units))
    rows, links = layers(list(all_units), arrows)
    text = svg(all_units, rows, links, place(rows, links))
    picture = given.root / "docs/map.svg"
    if not given.check:
        picture.write_text(text)
    elif not picture.exists() or picture.read_text() != text:
        sys.exit("docs/map.svg is out of date: run docs/draw_map.py")


main()
