#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh TREE DIR NAME...: in one guest, runs the suite of each mutant (DIR/NAME/suite: a
# script of TREE and its arguments) on its module, which is in DIR/NAME/kmod. $LAB_OUT/NAME.tap
# is what it said, $LAB_OUT/NAME.status how it ended, as tests/lab/run would have it.
# Stops after one that leaves the kernel other than it was: the next boot goes on.
set -u -o pipefail
dir=$2
cd "$1" || exit 1
shift 2
first=1

taint() { echo $(($(</proc/sys/kernel/tainted) & (1 << 5 | 1 << 7 | 1 << 9))); }

for name; do
	[[ ! -e $LAB_OUT/$name.status ]] || continue
	echo "$name" >"$LAB_OUT/under-way"
	mapfile -t suite <"$dir/$name/suite"
	limit=90
	((${#suite[@]} > 1)) || limit=300
	dmesg -C
	good=1
	LAB_BUILD=$dir/$name RDMATENSOR_TEST_STOP=1 setsid timeout -k 5 $limit "${suite[@]}" \
		>"$LAB_OUT/$name.tap" 2>&1 &
	suite_pid=$!
	# What hangs in the kernel ends by no signal
	for ((i = 0; i < (limit + 10) * 5; i++)); do
		kill -0 $suite_pid 2>/dev/null || break
		sleep 0.2
	done
	if kill -0 $suite_pid 2>/dev/null; then
		status=124
	else
		wait $suite_pid
		status=$?
	fi
	((status != 124)) || echo "TIME IS UP after $limit s" >>"$LAB_OUT/$name.tap"
	dmesg >/tmp/said
	if ! tests/lab/splats "$LAB_KERNEL" /tmp/said >>"$LAB_OUT/$name.tap" || (($(taint))); then
		((status)) || status=97
		good=0
	fi
	((status == 0 || status == 1)) || good=0
	# One that ends badly and does not say what failed has not been tried
	if ((status != 0 && status != 97 && status != 124)) && ! grep -q '^not ok' "$LAB_OUT/$name.tap"; then
		echo "ended with status $status, and did not say what failed" >>"$LAB_OUT/$name.tap"
		status=125
		# It may be for what was there before it: a fresh boot tells
		((first)) || { touch "$LAB_OUT/again"; exit 0; }
	fi
	if ((!status)) && ! lab-kmemleak >>"$LAB_OUT/$name.tap"; then
		status=97
	fi
	# Leaks stay, and would be found again after the next one
	if ((status)) && [[ -e /sys/kernel/debug/kmemleak ]]; then
		good=0
	fi
	# A module that is still there, or in use, and what the suite has left running
	rmmod rdmatensor_kunit 2>/dev/null
	rmmod rdmatensor 2>/dev/null
	[[ ! -d /sys/module/rdmatensor ]] || good=0
	[[ -d /sys/class/infiniband/$LAB_RDMA_DEV ]] || good=0
	echo $status >"$LAB_OUT/$name.status.new"
	mv "$LAB_OUT/$name.status.new" "$LAB_OUT/$name.status"
	((good)) || exit 0
	first=0
done
