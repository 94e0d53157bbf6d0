#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages of dist/ (packaging/build) where nothing of the source tree is, and uses them:
#   tests/packaging/install_test.sh [STEP]...       steps: wheel failure deb image (all, if none is named)
# wheel    each wheel, in an environment of its own: what it links, the smoke tier, a kernel in Python, a trace
# failure  from `pip install` to the named error of the broken kernel of README.md, in 60 seconds
# image    packaging/Containerfile in a root of debootstrap, with the smoke tier
# deb      the Debian package in that root: the smoke tier, and a store that it may not change
# The last two need root and debootstrap. A tier of its own: it takes minutes, and needs the network.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=${PLUMB_ROOT:-$source/build/root}
# Of each interpreter, as far as they are here: PYTHONS="python3.11 python3.12".
read -ra pythons <<<"${PYTHONS:-python3}"
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }

# with WORDS: not from the source tree, and without variables that lead there.
with() { (cd "$work" && env -u PYTHONPATH -u PLUMB_PROGRAM "$@"); }

# check_smoke COMMAND...: the smoke tier passes, and is compared with goldens.
check_smoke() {
  rm -f "$work/plumb.json"
  with "$@" run --tier smoke --quiet | tee "$work/said" || fail "the smoke tier does not pass"
  grep -Eq '^golden +[1-9][0-9]* cases with the same bits, 0 drifted, 0 failed' "$work/said" || fail "no goldens"
}

# What a wheel for $tag may need of the system. Everything else is linked into it.
check_links() {
  local file needed version
  while read -r file; do
    needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
      grep -Ev '^(libc|libm|libdl|librt|libpthread)\.so\.[0-9]+$|^ld-linux-x86-64\.so\.2$' || true)
    [[ -z $needed ]] || fail "${file#"$1"/} needs $needed"
    version=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
    printf '%s: %s\n' "${file#"$1"/}" "$version"
    [[ $(printf '%s\nGLIBC_2.36\n' "$version" | sort -V | tail -1) == GLIBC_2.36 ]] || fail "$file: later than the tag"
  done < <(find "$1/plumb_kernels" -type f \( -name '*.so' -o -path '*/bin/*' \))
}

# wheel_for PYTHON: 3.11 has its own, 3.12 and later share one.
wheel_for() {
  local version
  version=$("$1" -c 'import sys; print(min(sys.version_info[1], 12))')
  ls "$source"/dist/plumb_kernels-*-cp3"$version"-*manylinux*.whl
}

try_wheel() {
  local python=$1 wheel venv
  venv=$(mktemp -d "$work/venv.XXXXXX")
  wheel=$(wheel_for "$python")
  step "$(basename "$wheel") ($(stat -c %s "$wheel") bytes) with $("$python" --version)"
  "$python" -m venv "$venv"
  with "$venv/bin/pip" install -q "$wheel"
  check_links "$(with "$venv/bin/python" -c 'import plumb_kernels, pathlib; print(pathlib.Path(plumb_kernels.__file__).parents[1])')"
  [[ $(with "$venv/bin/plumb" --version) == "$(with "$venv/bin/python" -c 'import importlib.metadata as m; print(m.version("plumb-kernels"))')" ]] ||
    fail "the program and the package have two versions"
  check_smoke "$venv/bin/plumb"
  # Kernels in Python, and a trace, which is written with HDF5.
  with "$venv/bin/python" -m doctest -o ELLIPSIS "$source/docs/python.md" "$source/docs/traces.md"
  cp "$source/examples/plugin/python/kernels.py" "$work"
  with "$venv/bin/plumb" run --plugin kernels.py --tier smoke --quiet
}

try_failure() {
  step "from pip install to a named error"
  python3 tests/tools/first_failure.py "$(wheel_for python3)"
}

try_image() {
  step "packaging/Containerfile"
  rm -rf "$root"
  tests/packaging/containerfile.py run packaging/Containerfile --context dist --root "$root" -- run --tier smoke --quiet |
    tee "$work/said"
  grep -Eq '^golden +[1-9][0-9]* cases with the same bits, 0 drifted, 0 failed' "$work/said" || fail "no goldens"
}

try_deb() {
  step "the Debian package"
  [[ -d $root ]] || fail "$root is not there: the step image makes it"
  inside() { tests/packaging/containerfile.py exec --root "$root" -- "$@"; }
  inside dpkg-query -W -f '${Package} ${Version}: ${Depends}\n' plumb
  inside /usr/bin/plumb run --tier smoke --quiet --json "" | tee "$work/said" || fail "the smoke tier does not pass"
  grep -Eq '^golden +[1-9][0-9]* cases with the same bits, 0 drifted, 0 failed' "$work/said" || fail "no goldens"
  local refused code=0
  refused=$(inside setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/plumb golden regen --platform sim-sm90 \
    --op rms_norm --reason "a test" --goldens /usr/share/plumb/golden 2>&1) || code=$?
  [[ $code == 2 && $refused == "plumb: cannot write into /usr/share/plumb/golden: Permission denied" ]] ||
    fail "a store that cannot be written: exit code $code: $refused"
}

for one in "${@:-wheel failure image deb}"; do
  for name in $one; do
    case $name in
      wheel) for python in "${pythons[@]}"; do try_wheel "$python"; done ;;
      failure | image | deb) "try_$name" ;;
      *) fail "no step $name" ;;
    esac
  done
done
step "done"
