#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--strict] [--each] [PATTERN]...: the tests of injected failures, as root in a guest whose
# kernel injects them; with --each at each point, however often it is passed. Memory that leaked is
# looked for at the end.
set -u
. tests/lab/module.sh
if [[ ${1-} == --each ]]; then
	export TEST_EACH=1
	shift
fi
debugfs=/sys/kernel/debug

if [ ! -d $debugfs/failslab ]; then
	echo "Bail out! this kernel injects no failures"
	exit 1
fi
# Allocations that may wait fail too; nothing fails unless a test asks for it
for attribute in failslab fail_page_alloc; do
	echo N >$debugfs/$attribute/ignore-gfp-wait
	echo 0 >$debugfs/$attribute/verbose
done
echo 0 >$debugfs/fail_page_alloc/min-order
echo 0 >$debugfs/fail_usercopy/verbose

load
"$LAB_BUILD"/fault/fault "$@" || failed=1
unload
if leaks=$(lab-kmemleak); then
	result ok "no memory leaked"
else
	sed 's/^/# /' <<<"$leaks"
	result "not ok" "memory leaked"
fi
exit "$failed"
