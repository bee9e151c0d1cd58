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
# no module at one time or another, and none may find it half there.
churn() {
	local n=0 end=$((SECONDS + 8))
	while ((SECONDS < end)); do
		timeout 30 "$tool" perf "$LAB_IP:7000" -s 4096 -n 5 --json >/dev/null 2>&1 &&
			n=$((n + 1))
		(($? == 124)) && return 1
	done
	echo "# a client came through $n times"
}
serve_again() {
	local end=$((SECONDS + 8))
	while ((SECONDS < end)); do
		timeout 2 "$tool" perf --server --listen "$LAB_IP:7000" >/dev/null 2>&1
	done
}
unload_again() {
	local removed=0 refused=0 end=$((SECONDS + 8))
	while ((SECONDS < end)); do
		if rmmod rdmatensor 2>/dev/null; then
			removed=$((removed + 1))
			insmod "$module" || return 1
		else
			refused=$((refused + 1))
		fi
	done
	echo "# unloaded $removed times, refused $refused times"
	((removed && refused))
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
