#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [PATTERN]: the crash tests, as root in a guest with one node, and after
# them unloading raced with everything that keeps the module in use.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor

load
"$LAB_BUILD"/crash/crash "$@" || failed=1

# Openers come and go, each with a context, channels and a fetch; most of them find
# no module at one time or another, and none may find it half there. Until it has been
# unloaded and refused so many times, however long that takes here
enough=5
over=/tmp/unloaded-enough
churn() {
	local n=0
	until [[ -e $over ]]; do
		timeout 60 "$tool" perf "$LAB_IP:7000" -s 4096 -n 5 --json >/dev/null 2>&1 &&
			n=$((n + 1))
		(($? == 124)) && { echo "# a client has not ended in 60 s"; return 1; }
		# So that there is a time without one
		sleep 0.0$((RANDOM % 10))
	done
	echo "# a client came through $n times"
}
serve_again() {
	until [[ -e $over ]]; do
		timeout 2 "$tool" perf --server --listen "$LAB_IP:7000" >/dev/null 2>&1
	done
}
unload_again() {
	local removed=0 refused=0 end=$((SECONDS + 60)) ret=0
	while ((removed < enough || refused < enough || SECONDS < end - 52)); do
		((SECONDS < end)) || { ret=1; break; }
		if rmmod rdmatensor 2>/dev/null; then
			removed=$((removed + 1))
			insmod "$module" || { ret=1; break; }
		else
			refused=$((refused + 1))
		fi
	done
	touch $over
	echo "# unloaded $removed times, refused $refused times"
	return $ret
}
if (($# == 0)); then
	pids=()
	serve_again & server=$!
	churn & pids+=($!)
	churn & pids+=($!)
	unload_again & pids+=($!)
	status=ok
	for pid in "${pids[@]}"; do
		wait "$pid" || status="not ok"
	done
	wait $server
	result "$status" "unloading raced with use"
fi

unload
exit "$failed"
