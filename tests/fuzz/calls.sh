#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# calls.sh [--seed N] --ops N | --seconds N: the fuzzer of the ABI, as root in a guest
# of the lab; and after it, that the module can be unloaded, leaves no RDMA resource
# behind and loads again. Receives must always be there: rnr_retry=0 shows it.
set -u
module=${LAB_BUILD:?}/kmod/${LAB_KERNEL:?}/rdmatensor.ko
number=100
failed=0

result() {
	number=$((number + 1))
	[ "$1" = ok ] || failed=1
	echo "$1 $number - $2"
}

insmod "$module" rnr_retry=0 || { result "not ok" insmod; exit 1; }
"$LAB_BUILD"/fuzz/calls "$@" || failed=1

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
exit $failed
