#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Draws docs/run.svg: a plug-in whose rms_norm takes the rows of x for contiguous.
#   docs/draw_run.sh build/sim/bin/plumb
set -euo pipefail
plumb=$(realpath "$1") docs=$(cd "$(dirname "$0")" && pwd) folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command="plumb run --plugin ./kernels.so --op rms_norm --tier smoke --platform sim-gfx942"

sed 's/row \* p->x_row_stride/row * p->hidden/' "$docs/../tests/must_fail/plugins/launches.c" >"$folder/kernels.c"
cd "$folder"
"${CC:-cc}" -O2 -shared -fPIC -DPLUMB_FAULT=0 -I"$docs/../include" kernels.c -o kernels.so
# script(1) gives plumb a terminal, so that the text has colours. Long lines are cut by draw_run.py.
script -qec "stty cols 250; $plumb ${command#plumb } --json ''" /dev/null </dev/null >capture || true
{ echo "\$ $command"; cat capture; } | python3 "$docs/draw_run.py" >"$docs/run.svg"
