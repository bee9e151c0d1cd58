#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 4 KB fetches between two nodes with 1 ms of delay on the link, each way: many in flight
# beside one at a time with one message slot. Node 1 writes LAB_OUT/raw-delay.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
rounds=${1:-5}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor

insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
tc qdisc add dev "$LAB_NETDEV" root netem delay 1ms limit 100000 || die "no netem"

rate() {
	timeout 60 "$tool" perf "$LAB_PEER_IP:$1" --json -s 4096 "${@:2}" >/tmp/client.json ||
		die "perf failed"
	jq -r '.[0].fetches_per_second' /tmp/client.json
}

if [ "$LAB_NODE" = 0 ]; then
	spawn 'perf server' /tmp/s0 "$tool" perf --server --listen "$LAB_IP:7000" &&
		spawn 'perf server' /tmp/s1 "$tool" perf --server --listen "$LAB_IP:7001" \
			--msg-slots 1 || die "no server"
	lab-barrier ready 120
	lab-barrier measured 300
	kill %1 %2
	wait
else
	lab-barrier ready 120
	rm -f "$LAB_OUT/raw-delay"
	for _ in $(seq "$rounds"); do
		echo "fetch_rate_4k_1ms ours $(rate 7000 -q 64 -D 2)" >>"$LAB_OUT/raw-delay"
		echo "fetch_rate_4k_1ms peer $(rate 7001 --msg-slots 1 -q 1 -D 2)" \
			>>"$LAB_OUT/raw-delay"
	done
	lab-barrier measured 300
fi
rmmod rdmatensor || die "rmmod failed"
