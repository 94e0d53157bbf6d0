#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# .ci/check-subjects accepts commits of the right form, and refuses one commit for each rule.
#   check_subjects_test.sh PATH_OF_CHECK_SUBJECTS
set -euo pipefail
check=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q -b main .
commit() { git commit -q --allow-empty "$@"; }
commit -m "anything; wip"
mkdir .ci
git rev-parse HEAD >.ci/subjects-since
commit -m "judge: name the row of the worst element" -m "Readers look for it."
commit -m "plumb run: end with 1 if a cell is thin" -m "It was 0."
"$check" .

expect_refused() { # text of the refusal, then the arguments of git commit
  local said
  commit "${@:2}"
  if said=$("$check" . 2>&1); then echo "not refused: ${*:2}"; exit 1; fi
  [[ $said == *"$1"* ]] || { echo "refused without \"$1\": $said"; exit 1; }
  git reset -q --hard HEAD^
}
expect_refused 'the form is' -m "Fix things" -m "why"
expect_refused 'the form is' -m "judge:name the row" -m "why"
expect_refused 'does not land' -m "judge: wip" -m "why"
expect_refused 'semicolon' -m "judge: name rows; run: count them" -m "why"
expect_refused 'has to say why' -m "judge: name rows"
"$check" .

git checkout -q -b inner; commit -m "judge: a" -m "why"
git checkout -q -b outer main; commit -m "judge: b" -m "why"
git merge -q --no-ff -m "Merge inner" inner
git checkout -q main; git merge -q --no-ff -m "Merge outer" outer
said=$("$check" . 2>&1) && { echo "a merge within a merge is accepted"; exit 1; }
[[ $said == *'a merge within a merge'* ]]

echo 0123456789012345678901234567890123456789 >.ci/subjects-since
said=$("$check" . 2>&1) && { echo "an unknown commit is accepted"; exit 1; }
[[ $said == *'does not have'* ]]
