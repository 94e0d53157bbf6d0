#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads goldens with nothing of plumb's: h5py, numpy, xxhash.

    read_elsewhere.py GOLDENS

Every kind of data set; every digest of every file; and one op from the beginning: inputs from the
case's name, the reference in numpy, the stored result beside it. docs/goldens.md has the schema.
"""
import sys
from pathlib import Path

import h5py
import numpy as np
import xxhash


def raw(data):
    """The stored bytes of a data set: bf16 is not converted to float32."""
    out = np.empty(data.shape, dtype=f"V{data.dtype.itemsize if not is_bf16(data) else 2}")
    data.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, mtype=data.id.get_type())
    return out.tobytes()


def is_bf16(data):
    kind = data.id.get_type()
    if kind.get_class() != h5py.h5t.FLOAT or kind.get_size() != 2:
        return False
    # Positions and lengths of sign, exponent and mantissa.
    assert kind.get_fields() == (15, 7, 8, 0, 7) and kind.get_ebias() == 127
    return True


def digest(text):
    return xxhash.xxh3_128_hexdigest(text)


def words(attribute):
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def check_sketch(group, rows, columns, seen):
    """The statistics and projections of a tensor all of whose rows are stored."""
    wide = np.concatenate([np.asarray(rows[row], dtype=float) for row in sorted(rows)])
    least_at, greatest_at = int(np.argmin(wide)), int(np.argmax(wide))
    expected = [0, wide.mean(), np.sqrt((wide**2).sum()), wide[least_at], least_at, wide[greatest_at], greatest_at]
    scale = np.abs(wide).sum()
    assert np.allclose(group.attrs["statistics"], expected, rtol=1e-9, atol=1e-12 * scale), group.name
    at = np.arange(len(wide), dtype=np.uint64)
    signs, part = random_bits(1, at), at % np.uint64(columns) * np.uint64(4) // np.uint64(columns)
    for i in range(32):
        sign = np.where(signs >> np.uint64(i % 8) & np.uint64(1), 1.0, -1.0)
        projection = (sign * wide)[part == i // 8].sum()
        assert abs(group.attrs["projections"][i] - projection) <= 1e-12 * scale, group.name
    seen.add(("sketch recomputed", words(group.attrs["dtype"]), words(group.attrs["format"])))


def check_tensor(group, seen):
    """Checks one output. Returns its values by row number."""
    dtype, shape = words(group.attrs["dtype"]), list(group.attrs["shape"])
    columns = int(shape[-1]) if shape else 1
    for name, data in group.items():
        assert digest(raw(data)) == words(data.attrs["xxh3_128"]), data.name
        assert data.compression == "gzip" and data.shuffle and data.fletcher32, data.name
        seen.add((name, dtype, words(group.attrs["format"])))
        if dtype == "bf16" and "values" in name:
            bits = np.frombuffer(raw(data), np.uint16).astype(np.uint32) << 16
            assert np.array_equal(data[()].ravel(), bits.view(np.float32), equal_nan=True), data.name
    if "values" in group:
        assert digest(raw(group["values"])) == words(group.attrs["xxh3_128"]), group.name
        return dict(enumerate(group["values"][()].reshape(-1, columns)))
    if "sampled_values" not in group:
        return {}
    rows, sums = group["sampled_rows"][()], group["row_checksums"][()]
    stored = raw(group["sampled_values"])
    size = len(stored) // len(rows)
    for i, row in enumerate(rows):
        assert xxhash.xxh3_64_intdigest(stored[i * size : (i + 1) * size]) == sums[row], group.name
    stored = dict(zip(rows.tolist(), group["sampled_values"][()]))
    if "projections" in group.attrs:
        seen.add(("sketch", dtype, words(group.attrs["format"])))
        if len(stored) == len(sums) and all(np.isfinite(np.asarray(row, float)).all() for row in stored.values()):
            check_sketch(group, stored, columns, seen)
    return stored


def check_store(folder):
    seen, cases = set(), 0
    manifest = [line.split() for line in (folder / "manifest.txt").read_text().splitlines() if line[0] != "#"]
    for expected, name in manifest:
        path = folder / name
        assert digest(path.read_bytes()) == expected, name
        with h5py.File(path) as file:
            assert file.attrs["schema"] in (1, 2)
            for row in file[words(file.attrs["op"])].values():
                for case in row.values():
                    cases += 1
                    for output in words(case["outputs"].attrs["order"]).split():
                        check_tensor(case["outputs"][output], seen)
    return cases, seen


# ---- inputs from a name (cases/tensors/fill.cpp) ----


def random_bits(seed, counter):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.asarray(counter, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def mix(seed, salt):
    return random_bits(np.uint64(seed) ^ np.uint64(0x6A09E667F3BCC909), salt)


def normal(seed, counter):
    total = np.zeros(len(counter))
    for half in range(2):
        bits = random_bits(seed, np.uint64(2) * counter + np.uint64(half))
        for shift in (0, 16, 32, 48):
            total += ((bits >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(float)
    return (total - 8 * 65535 / 2.0) * 1.8688123650118534e-05


def to_bf16(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def real_rows(seed, rows, columns):
    counter = np.arange(columns, dtype=np.uint64)
    outliers = np.where(random_bits(mix(seed, 2), counter) % np.uint64(64) == 0, 16.0, 1.0)
    table = np.empty((rows, columns), np.uint16)
    for row in range(rows):
        bits = int(random_bits(mix(seed, 1), row))
        scale = (1 + (bits >> 32) % 8 / 8) * 2.0 ** (bits % 20 - 10)
        table[row] = to_bf16(normal(mix(seed, 16 + row), counter) * scale * outliers)
    return table


def check_rms_norm(folder):
    """x / sqrt(mean(x^2) + eps) of 32 heads, in double precision."""
    case = "rms_norm/head_dim_without_weight/eager"
    x = real_rows(mix(mix(xxhash.xxh3_64_intdigest(case), 100), 1), 32, 512)
    with h5py.File(folder / "sim-sm90" / "rms_norm.h5") as file:
        assert digest(x.tobytes()) == words(file[case]["inputs"].attrs["x"]), "other inputs"
        stored = check_tensor(file[case]["outputs"]["out"], set())
    wide = (x.astype(np.uint32) << 16).view(np.float32).astype(float)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6)
    assert len(stored) > 0
    for row, values in stored.items():
        assert np.all(np.abs(values - expected[row]) <= 2.0**-8 * np.abs(expected[row]) * 1.001), row
    return len(stored)


def main():
    folder = Path(sys.argv[1])
    cases, seen = check_store(folder)
    for kind in ("bf16", "f32", "i32", "u8"):
        assert any(dtype == kind for _, dtype, _ in seen), kind
    for form in ("number", "e4m3fn", "e4m3fnuz", "ue8m0", "e2m1"):
        assert any(format == form for _, _, format in seen), form
    for name in ("values", "sampled_values", "sampled_rows", "row_checksums"):
        assert any(data == name for data, _, _ in seen), name
    kinds = {data for data, _, _ in seen}
    assert "sketch" not in kinds or "sketch recomputed" in kinds
    print(f"{cases} cases, {len(seen)} kinds of data; {check_rms_norm(folder)} rows of rms_norm recomputed")


if __name__ == "__main__":
    main()
