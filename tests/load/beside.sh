#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two nodes on a wire: node 0 serves, node 1 does what is short beside long transfers over
# the same channel.
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor

load
if [ "$LAB_NODE" = 0 ]; then
	check "serve" spawn ready /tmp/serve "$tool" perf --server --listen "$LAB_IP:7000" --json
	lab-barrier serving 60
	lab-barrier over 400
	check "the server ends well" eval 'kill $spawned && wait $spawned'
else
	lab-barrier serving 60
	"$LAB_BUILD"/load/load beside "$LAB_PEER_IP:7000" || failed=1
	lab-barrier over 400
fi
check "rmmod" rmmod rdmatensor
exit $failed
