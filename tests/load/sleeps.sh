#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two nodes whose queue pairs are not woken by what they wait for: see sleeps.c
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh

lost_some() {
	local lost
	lost=$(</sys/module/rdmatensor_sleeper/parameters/lost)
	echo "$lost"
	((lost))
}

# The peer is probed on lane 0 alone, so contents have another one beside it
export RDMATENSOR_LANES=2 RDMATENSOR_STRIPE_BYTES=256
load
# A wire that is slower than the processor, so that each burst pauses its queue pair
modprobe sch_tbf || exit 1
tc qdisc replace dev "$LAB_NETDEV" root tbf rate 5mbit burst 4kb limit 1mb || exit 1
check "queue pairs sleep" insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor_sleeper.ko"
if [ "$LAB_NODE" = 0 ]; then
	check "a peer" spawn ready /tmp/peer "$LAB_BUILD"/load/load peer "$LAB_IP"
	lab-barrier serving 60
	check "the peer ends well" eval 'wait $spawned || { cat /tmp/peer; false; }'
else
	lab-barrier serving 60
	"$LAB_BUILD"/load/load sleeps "$LAB_PEER_IP" || failed=1
fi
# Reads sleep at their reader, contents at their publisher
check "wake-ups were lost" lost_some
lab-barrier over 150
tc qdisc del dev "$LAB_NETDEV" root
check "queue pairs wake up" rmmod rdmatensor_sleeper
check "rmmod" rmmod rdmatensor
exit $failed
