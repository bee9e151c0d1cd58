#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--seconds N] [--seed N] [--threads N] [--keep-device]: many threads on the same
# handles, as root in a guest of the lab with several processors.
set -u
. tests/lab/module.sh

out_of_use() {
	local i
	# The last of a killed process's descriptors may just be closing
	for ((i = 0; i < 300; i++)); do
		[[ $(</sys/module/rdmatensor/refcnt) == 0 ]] && return
		sleep 0.1
	done
	echo "the module is in use: $(</sys/module/rdmatensor/refcnt)"
	return 1
}

export THREADS_TELL="for what in contexts channels requests domains pools; do
	$LAB_BUILD/ulib/bin/rdmatensor show \$what -j | sed 's/^/# /'; done"

# Stock kernels before 6.12 have no other exporter of dma-bufs
[[ $LAB_KERNEL != [0-9]* ]] || modprobe vgem || exit 1
load
"$LAB_BUILD"/threads/threads "$@" || failed=1
check "nothing uses the module" out_of_use
unload
exit "$failed"
