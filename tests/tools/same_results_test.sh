#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# same_results.py accepts reports that differ in times only. It refuses another margin, a missing case,
# and a cell with too few cases.   same_results_test.sh SAME_RESULTS.PY
set -euo pipefail
check=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir a b c d
report() { # margin, seconds, comparing cases
  printf '{"coverage":{"rms_norm":{"eager":{"sim-sm90":%s},"full_graph":{"sim-sm90":9}}},' "$3"
  printf '"cases":[{"case":"rms_norm/r/eager","platform":"sim-sm90","seconds":%s,"tensors":[{"margin":%s}]}]}' "$2" "$1"
}
report 0.25 1 9 >a/x.json
report 0.25 2 9 >b/x.json
report 0.2500000000000001 1 9 >c/x.json
report 0.25 1 7 >d/x.json
echo '{"coverage":{},"cases":[]}' >none.json
refused() { if python3 "$check" "$@" >said; then echo "accepted: $*"; cat said; exit 1; fi; }

python3 "$check" a b
refused a c
refused a none.json
refused none.json none.json
python3 "$check" --covered 8 2 a
refused --covered 8 2 d
refused --covered 8 4 a

mkdir more
sed 's|"cases":\[|&{"case":"rms_norm/s/eager","platform":"sim-sm90","tensors":[]},|' a/x.json >more/x.json
python3 "$check" --part more a
refused more a
refused --part a more
refused --part more c
refused --part more none.json
