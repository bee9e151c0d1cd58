#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [PATTERN]: the tests of injected failures, as root in a guest whose kernel
# injects them. Memory that leaked is looked for at the end.
set -u
module=${LAB_BUILD:?}/kmod/${LAB_KERNEL:?}/rdmatensor.ko
debugfs=/sys/kernel/debug
failed=0

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

insmod "$module" || exit 1
"$LAB_BUILD"/fault/fault "$@" || failed=1
if rmmod rdmatensor; then
	echo "ok 1001 - rmmod"
else
	echo "not ok 1001 - rmmod"
	failed=1
fi
if leaks=$(lab-kmemleak); then
	echo "ok 1002 - no memory leaked"
else
	sed 's/^/# /' <<<"$leaks"
	echo "not ok 1002 - memory leaked"
	failed=1
fi
exit $failed
