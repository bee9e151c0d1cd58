# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Sourced by whoever counts test cases.

# untold LOG: how many cases a plan of TAP has announced and nobody has told of, a number that
# is told twice being one. The plan of a program comes first or last, and where several run
# one after another, each has numbers from 1. What scripts add of their own begins at 1001, and
# has no plan
untold() {
	awk '{ node = sub(/^node1\| /, "") ? 1 : 0; sub(/^node0\| /, "") }
		/^1\.\.[0-9]+$/ { planned[node] += substr($0, 4); ended[node] = 1 }
		/^(not )?ok [0-9]+ / {
			sub(/^not /, "")
			if ($2 == 1 && ended[node])
				program[node]++
			if ($2 < 1000)
				ended[node] = 0
			if ($2 < 1000 && !((node, program[node], $2) in seen)) {
				seen[node, program[node], $2] = 1
				told[node]++
			}
		}
		END { for (node in planned)
				if (planned[node] > told[node])
					missing += planned[node] - told[node]
			print missing + 0 }' "$1"
}

# count_cases LOG: sets $ok, $bad and $skip to the cases in it that passed, failed and were
# skipped. TAP, of one node or two, where a case that was planned and is missing has failed;
# cmocka counts for itself
count_cases() {
	skip=$(grep -ciE '^(node[01]\| )?ok [0-9]+ .*# SKIP' "$1")
	ok=$(($(grep -cE '^(node[01]\| )?ok [0-9]+ ' "$1") - skip))
	bad=$(($(grep -cE '^(node[01]\| )?not ok\b' "$1") + $(untold "$1")))
	ok=$((ok + $(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p' "$1" | paste -sd+ | sed 's/^$/0/')))
	bad=$((bad + $(grep -cE '^\[  FAILED  \] [a-z_]+$' "$1")))
	skip=$((skip + $(sed -nE 's/^\[  SKIPPED \] ([0-9]+) test.*/\1/p' "$1" | paste -sd+ | sed 's/^$/0/')))
}
