# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For scripts that run several suites in guests, and end with one line. Sourced, never run;
# after lib.sh, at the top of the checkout. $label goes into the names of the logs.

log=build/log
: "${label:?}"
passed=0 failed=0 skipped=0
. tests/lab/count.sh

# suite KERNEL NAME SECONDS COMMAND...: a line of how it went, and what it says of how much
# it did. Longer than SECONDS it may not take
suite() {
	local kernel=$1 name=$2 limit=$3 out=$log/$label-$2.tap t0=$SECONDS rc=0 ok bad skip
	shift 3
	tests/lab/run --kernel "$kernel" --log "$label-$name" --timeout "$limit" "$@" \
		>"$out" 2>&1 </dev/null || rc=$?
	count_cases "$out"
	((rc == 0 || bad)) || bad=1
	((ok || bad)) || bad=1
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '%s %-10s %4d ok, %d failed, status %d (%d s)  %s\n' \
		"$( ((bad)) && echo FAIL || echo "ok  ")" "$name" "$ok" "$bad" "$rc" \
		$((SECONDS - t0)) "$(sed -nE 's/^((operations|calls) [0-9]+.*)$/\1/p' "$out")"
	((!bad)) || grep -E '^not ok|^lab: |^# wrong|^# task' "$out" | tail -n 20
}

# built COMMAND...: or the script ends
built() {
	mkdir -p $log
	"$@" >"$log/$label-build.txt" 2>&1 || { tail "$log/$label-build.txt"; exit 1; }
}

# The status is its
closing_line() {
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0))
}
