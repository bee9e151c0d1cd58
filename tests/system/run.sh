#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [PATTERN]: the system tests, as root in a guest of the lab, and after them
# what must be true of the module: not to be removed while a context is open, to
# leave nothing behind. Receives must always be there: rnr_retry=0 shows it.
set -u
module=${LAB_BUILD:?}/kmod/${LAB_KERNEL:?}/rdmatensor.ko
number=1000
failed=0

result() {
	number=$((number + 1))
	[ "$1" = ok ] || failed=1
	echo "$1 $number - $2"
}

export TEST_IP6=fd00:7264::1
ip addr add $TEST_IP6/64 dev "${LAB_NETDEV:?}" || exit 1

insmod "$module" rnr_retry=0 || { result "not ok" insmod; exit 1; }

exec 9<>/dev/rdmatensor
if rmmod rdmatensor 2>/dev/null; then
	result "not ok" "rmmod while a context is open"
	exit 1
fi
result ok "rmmod is refused while a context is open"
exec 9>&-

"$LAB_BUILD"/system/system "$@" || failed=1

resources() { rdma resource show | tr -d '\n'; }
before=$(resources)
if rmmod rdmatensor; then
	result ok "rmmod"
else
	result "not ok" "rmmod"
fi
# What rxe and rdma_cm have of their own is there before and after
if [ "$(resources)" = "$before" ]; then
	result ok "no RDMA resource was left"
else
	echo "# $before"
	echo "# $(resources)"
	result "not ok" "RDMA resources were left to unload"
fi
if insmod "$module" && rmmod rdmatensor; then
	result ok "loads and unloads again"
else
	result "not ok" "loads and unloads again"
fi
if insmod "$module" lanes=9 2>/dev/null; then
	result "not ok" "a bad parameter is refused"
	rmmod rdmatensor
else
	result ok "a bad parameter is refused"
fi
exit $failed
