#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# before.sh ROUNDS: bulk bandwidth of this tree's module and tool, and in turn with them, on
# the same kernel, of those of a tree before it, which are in build/before. On one node or
# two. On one, a step of `fetch --all` of the demo's model, too. Lines as guest.sh's, into
# LAB_OUT/raw-before-LAB_KERNEL.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
rounds=${1:-5}
bytes=$((32 << 20))
client=0 suffix=
[ "$LAB_NODES" = 1 ] || { client=1 suffix=_nodes; }
raw=$LAB_OUT/raw-before-$LAB_KERNEL$suffix

# bandwidth TOOL DEPTH FETCHES: MiB/s
bandwidth() {
	timeout 200 "$1" perf "$address:7000" --json -s $bytes -q "$2" -n "$3" \
		>/tmp/before.json || die "perf failed"
	jq -r '.[0].bytes_per_second / 1048576' /tmp/before.json
}

# fetch_all TOOL: milliseconds of a step, the median of those after the first
fetch_all() {
	spawn ready /tmp/serve "$1" serve --json --steps 9 "$LAB_BUILD/demo/model.safetensors" \
		--listen "$LAB_IP:7001" >&2 || die "no server of the model"
	timeout 60 "$1" fetch "$LAB_IP:7001" --all --steps 9 --json -o /tmp/got >/tmp/all.json ||
		die "fetch failed"
	kill "$spawned"
	wait "$spawned"
	jq -r '[.steps[1:][].seconds] | sort | .[length / 2 | floor] * 1000' /tmp/all.json
}

# measure SIDE DIRECTORY FETCHES
measure() {
	local side=$1 tool=$2/ulib/bin/rdmatensor server
	insmod "$2/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
	if [ "$LAB_NODE" = 0 ]; then
		spawn ready /tmp/server "$tool" perf --server --listen "$LAB_IP:7000" --json ||
			die "no server"
		server=$spawned
	fi
	lab-barrier "serving-$side-$round" 60
	if [ "$LAB_NODE" = $client ]; then
		echo "bulk1_vs_before$suffix $side $(bandwidth "$tool" 1 "$3")" | tee -a "$raw"
		echo "bulk8_vs_before$suffix $side $(bandwidth "$tool" 8 $((2 * $3)))" |
			tee -a "$raw"
	fi
	if [ "$LAB_NODES" = 1 ]; then
		echo "fetch_all_vs_before $side $(fetch_all "$tool")" | tee -a "$raw"
	fi
	lab-barrier "measured-$side-$round" 400
	if [ "$LAB_NODE" = 0 ]; then
		kill "$server"
		wait "$server"
	fi
	rmmod rdmatensor || die "rmmod failed"
}

[ "$LAB_NODE" != $client ] || rm -f "$raw"
address=$LAB_IP fetches=32
# Shorter ones there: eight share the wire, and perf gives each ten seconds
[ "$LAB_NODES" = 1 ] || address=$LAB_PEER_IP fetches=8 bytes=$((16 << 20))
for round in $(seq "$rounds"); do
	measure ours "$LAB_BUILD" $fetches
	measure peer "$LAB_BUILD/before" $fetches
done
