#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--seeds N] [SUITE[.CASE]]: runs the KUnit suites, or those that match SUITE, as root in a guest whose kernel has
# KUnit and KUnit's debugfs. Modules are taken from $LAB_BUILD/kmod/$LAB_KERNEL. N: of the games that are played at
# random, 48 of each kind; fewer where the kernel is slow.
#
# Prints each suite's KTAP as comments, and one line "ok" or "not ok" for each
# test case (with "# SKIP" if it was skipped), for each suite that did not run, and for memory that leaked. Exits
# with 1 if anything is not ok. What else the kernel complained of is seen by
# tests/lab/run.
set -u

here=$(cd "$(dirname "$0")" && pwd)
modules=${LAB_BUILD:?}/kmod/${LAB_KERNEL:?}
debugfs=/sys/kernel/debug
number=0
failed=0

# shellcheck source=tests/kunit/cases.sh
. "$here/cases.sh"

# result ok|"not ok" NAME
result() {
	number=$((number + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $number - kunit $2"
}

comment() {
	sed 's/^/# /'
}

[ -d $debugfs/kunit ] || mount -t debugfs none $debugfs || exit 1
if [ ! -d $debugfs/kunit ]; then
	echo "Bail out! this kernel has no KUNIT_DEBUGFS"
	exit 1
fi

# insmod waits for each case, uninterruptible, and KUnit gives up one after 300 s
hung=/proc/sys/kernel/hung_task_timeout_secs
[ ! -w $hung ] || echo 320 >$hung

seeds=
if [ "${1:-}" = --seeds ]; then
	seeds=seeds=$2
	shift 2
fi
wanted=${1:-*}
# Without the newline, which it would take for a part of the pattern
printf %s "$wanted" >/sys/module/kunit/parameters/filter_glob
insmod "$modules/rdmatensor.ko" || exit 1
if ! insmod "$modules/rdmatensor_kunit.ko" ${seeds:+"$seeds"}; then
	rmmod rdmatensor
	exit 1
fi

for suite in $(sed -n 's/^\t\.name = "\(rdmatensor_[a-z]*\)",$/\1/p' "$here"/*.c); do
	# shellcheck disable=SC2254 # a pattern
	case $suite in ${wanted%%.*}) ;; *) continue ;; esac
	log=$(cat "$debugfs/kunit/$suite/results" 2>/dev/null)
	if [ -z "$log" ]; then
		result "not ok" "$suite did not run"
		continue
	fi
	echo "$log" | comment
	# Cases are indented by four; parameters of a case by eight
	cases=$(echo "$log" | kunit_cases "$suite")
	[ -n "$cases" ] || result "not ok" "$suite has no test case"
	while read -r case; do
		[ -n "$case" ] || continue
		result "${case%% - kunit *}" "${case#* - kunit }"
	done <<-END
		$cases
	END
done

[ "$number" -gt 0 ] || result "not ok" "no case is called $wanted"
rmmod rdmatensor_kunit && rmmod rdmatensor || result "not ok" "rmmod"

if command -v lab-kmemleak >/dev/null; then
	if leaks=$(lab-kmemleak); then
		result ok "no memory leaked"
	else
		echo "$leaks" | comment
		result "not ok" "memory leaked"
	fi
fi

echo "1..$number"
echo "# $((number - failed)) of $number ok"
[ "$failed" -eq 0 ]
