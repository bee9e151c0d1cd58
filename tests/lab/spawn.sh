# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For scripts that have servers in the background. Sourced, never run.

# spawn WORD LOG COMMAND...: begins it, $spawned is its pid. True once it has said WORD, to
# LOG; if it ends without, or says nothing of it for a minute, what it said is shown
spawn() {
	local word=$1 log=$2
	shift 2
	"$@" >"$log" 2>&1 &
	spawned=$!
	for _ in $(seq 600); do
		grep -q -- "$word" "$log" && return 0
		kill -0 $spawned 2>/dev/null || break
		sleep 0.1
	done
	cat "$log"
	return 1
}
