#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# matrix.sh [--strict] [LOAD...]: the load matrix, on one node or two. Node 0 has the peer, the last
# one the driver.
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh

"$LAB_BUILD"/load/load knows "$@" || exit 1

# All checks of a debug kernel take their time, and not of each step the same
case $LAB_KERNEL in *-debug) export LOAD_SLACK=3 ;; esac

# rdma_cm sends a lost message again after six seconds. Two that are lost end a set-up whose bound
# is the default of ten, so the bound is larger here; the table says how long a set-up may take.
export RDMATENSOR_HANDSHAKE_MS=30000

# The exporter of dma-bufs that all stock kernels have
case $LAB_KERNEL in [0-9]*) modprobe vgem || exit 1 ;; esac
load
if [ "$LAB_NODE" = 0 ]; then
	check "a peer" spawn ready /tmp/peer "$LAB_BUILD"/load/load peer "$LAB_IP"
fi

in_strict_mode() {
	"$LAB_BUILD"/ulib/bin/rdmatensor show channels -j |
		jq -e 'length > 0 and all(.mr_mode == "strict")'
}

# matrix PEER LOAD...
matrix() {
	local pid
	"$LAB_BUILD"/load/load matrix "$@" &
	pid=$!
	[[ ! ${modes[*]} ]] || check "the channels are in strict mode" until_true in_strict_mode
	wait $pid || failed=1
}

if [ "$LAB_NODES" = 1 ]; then
	matrix "$LAB_IP" "$@"
else
	modprobe sch_netem
	lab-barrier serving 100
	if [ "$LAB_NODE" = 1 ]; then
		matrix "$LAB_PEER_IP" "$@"
	fi
	lab-barrier over 600
fi
if [ "$LAB_NODE" = 0 ]; then
	check "the peer ends well" eval 'wait $spawned || { cat /tmp/peer; false; }'
fi
check "rmmod" rmmod rdmatensor
exit $failed
