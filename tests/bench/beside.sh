#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# beside.sh SECONDS [DIRECTORY]: what short things take beside bulk, each part at most that
# long; with the module in DIRECTORY, build/. On one node or two. Lines as guest.sh's
# into LAB_OUT/raw-beside-LAB_KERNEL, all figures into beside-LAB_KERNEL.json.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
dir=${2:-$LAB_BUILD}
tool=$LAB_BUILD/ulib/bin/rdmatensor
client=0 suffix=
[ "$LAB_NODES" = 1 ] || { client=1 suffix=_nodes; }
raw=$LAB_OUT/raw-beside-$LAB_KERNEL$suffix
json=$LAB_OUT/beside-$LAB_KERNEL$suffix.json

# row NAME OURS PEER: of that JSON; a row is what it takes, and what it is compared with
row() {
	jq -r "select($2) | \"$1$suffix ours \\($2)\", \"$1$suffix peer \\($3)\"" "$json"
}

insmod "$dir/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
if [ "$LAB_NODE" = 0 ]; then
	spawn ready /tmp/server "$tool" perf --server --listen "$LAB_IP:7000" --json ||
		die "no server"
fi
lab-barrier serving 60
if [ "$LAB_NODE" = $client ]; then
	address=$LAB_IP
	[ "$LAB_NODES" = 1 ] || address=$LAB_PEER_IP
	"$LAB_BUILD/load/load" figures "$address:7000" "$1" | tee "$json"
	[ "${PIPESTATUS[0]}" = 0 ] || die "no figures"
	{
		row fetch_lat_behind_bulk .beside.lat.p50 .alone.lat.p50
		row cancel_to_free .alone.cancel.max .alone.rtt.max
		row cancel_to_free_p50 .alone.cancel.p50 .alone.rtt.p50
		row cancel_to_free_bulk .beside.cancel.max .alone.rtt.max
		row cancel_to_free_bulk_p50 .beside.cancel.p50 .alone.rtt.p50
		row cancel_to_free_queued .beside.queued.max .alone.rtt.max
		row cancel_to_free_queued_p50 .beside.queued.p50 .alone.rtt.p50
	} >"$raw"
	cat "$raw"
fi
lab-barrier measured 900
if [ "$LAB_NODE" = 0 ]; then
	kill "$spawned"
	wait
fi
rmmod rdmatensor || die "rmmod failed"
