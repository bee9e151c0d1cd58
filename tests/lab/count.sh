# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Sourced by whoever counts test cases.

# count_cases LOG: sets $ok, $bad and $skip to the cases in it that passed, failed and were
# skipped. TAP, of one node or two; cmocka counts for itself
count_cases() {
	skip=$(grep -ciE '^(node[01]\| )?ok [0-9]+ .*# SKIP' "$1")
	ok=$(($(grep -cE '^(node[01]\| )?ok [0-9]+ ' "$1") - skip))
	bad=$(grep -cE '^(node[01]\| )?not ok [0-9]+ ' "$1")
	ok=$((ok + $(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p' "$1" | paste -sd+ | sed 's/^$/0/')))
	bad=$((bad + $(grep -cE '^\[  FAILED  \] [a-z_]+$' "$1")))
	skip=$((skip + $(sed -nE 's/^\[  SKIPPED \] ([0-9]+) test.*/\1/p' "$1" | paste -sd+ | sed 's/^$/0/')))
}
