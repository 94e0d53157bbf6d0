#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Draws docs/report.png and docs/report_phone.png: pages of a wrong kernel in headless Chromium.
#   docs/draw_report.sh build/sim/bin/plumb build/sim/test_plugins
set -euo pipefail
plumb=$(realpath "$1") docs=$(cd "$(dirname "$0")" && pwd) folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The page shows the command. So that it has no paths of this machine, everything is in one folder.
cp "$2/launches_ignores_weight.so" "$folder/kernels.so"
ln -s "$plumb" "$folder/plumb"
cd "$folder"
PATH=$folder:$PATH

shoot() {  # page, picture, width,height, further options
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000 \
    --user-data-dir="$folder/profile" --window-size="$3" --screenshot="$docs/$2" "${@:4}" "file://$folder/$1" 2>/dev/null
}

plumb run --plugin ./kernels.so --op rms_norm --tier smoke --platform sim-sm90 --platform sim-gfx942 \
  --quiet --html wide.html >/dev/null || true
plumb run --plugin ./kernels.so --case rms_norm/kv_latent_slice/eager --platform sim-sm90 \
  --quiet --html phone.html >/dev/null || true
shoot wide.html report.png 1100,1500
shoot phone.html report_phone.png 390,1500 --blink-settings=preferredColorScheme=0
