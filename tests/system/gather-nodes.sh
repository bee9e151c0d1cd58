#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# gather-nodes.sh: 300,000 rows of three owners on two nodes, over a wire that is whole,
# and a tenth of that over one that loses; every row of the last gathers is compared. Two owners are on node 0,
# one is on node 1, where the reader is. Then an owner goes in the middle.
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor

# owner NUMBER PORT: a third of the rows. It does not look whether its readers are there:
# see ends_in_time
owner() {
	RDMATENSOR_PROBE_MS=600000 spawn exporting "/tmp/owner-$1" "$tool" gather --server \
		--rows $(($1 * 20000)):$((($1 + 1) * 20000)) --listen "$LAB_IP:$2" \
		--worker "owner-$1" || return 1
	owners+=("$spawned")
}

# gathers ITERS IDS: that many rows in all, and none is wrong or missing
gathers() {
	local got
	got=$("$tool" gather "$LAB_PEER_IP:7000" "$LAB_PEER_IP:7001" "$LAB_IP:7002" \
		--gather-lanes 4 -n "$1" -r "$2" -q 2 -j) || return 1
	jq -Mc '[.rows, .gather_reads, .gather_signalled, .gather_again, .gather_lanes_down]' <<<"$got"
	[[ $(jq .rows <<<"$got") == $(($1 * $2)) && $(jq .gathered_rows <<<"$got") == $(($1 * $2)) ]] &&
		jq -e '.gather_signalled * 100 <= .rows' <<<"$got" >/dev/null
}

# An owner is killed while its rows are read: an error that says so, in time
loses_an_owner() {
	local begin=$SECONDS status
	"$tool" gather "$LAB_PEER_IP:7000" "$LAB_PEER_IP:7001" "$LAB_IP:7002" -D 90 \
		>/tmp/lost 2>&1 &
	reader=$!
	until "$tool" show contexts -j | jq -e 'any(.counters.gathered > 1)' >/dev/null; do
		kill -0 $reader || break
	done
	lab-barrier reading 60
	wait $reader
	status=$?
	cat /tmp/lost
	((status == 1 && SECONDS - begin < 60)) && grep -q 'rows are missing, first at position' /tmp/lost
}

# Nothing gets through any more. What is in flight ends when the transport gives up, lanes
# are connected again, which would take a minute, and the deadline ends that
ends_in_time() {
	local begin took status
	RDMATENSOR_HANDSHAKE_MS=60000 RDMATENSOR_PROBE_MS=600000 RDMA_QP_TIMEOUT=12 \
		"$tool" gather "$LAB_PEER_IP:7000" "$LAB_PEER_IP:7001" "$LAB_IP:7002" -r 2000 -D 90 -t 10 \
		>/tmp/late 2>&1 &
	reader=$!
	until "$tool" show contexts -j | jq -e 'any(.counters.gathered > 1)' >/dev/null; do
		kill -0 $reader || break
	done
	tc qdisc replace dev "$LAB_NETDEV" root netem loss 100%
	begin=$SECONDS
	wait $reader
	status=$?
	took=$((SECONDS - begin))
	cat /tmp/late
	echo "ended with $status after $took s"
	tc qdisc del dev "$LAB_NETDEV" root
	((status == 1 && took >= 5 && took < 30)) && grep -qi 'timed out.*rows are missing' /tmp/late
}

# Features of a graph's nodes, a third of them a worker: two on node 0, one here
graph=$LAB_BUILD/demo/graph
nodes=$(awk '{ if ($1 > m) m = $1; if ($2 > m) m = $2 } END { print m + 1 }' "$graph")
third=$((nodes / 3 + 1))

# features NUMBER PORT
features() {
	local start=$(($1 * third)) end=$((($1 + 1) * third))
	((end <= nodes)) || end=$nodes
	spawn serving "/tmp/features-$1" "$LAB_BUILD/ulib/bin/neighbours" serve "$LAB_IP:$2" \
		$start $end || return 1
	owners+=("$spawned")
}

samples() {
	"$LAB_BUILD/ulib/bin/neighbours" sample "$graph" "$LAB_PEER_IP:7010" "$LAB_PEER_IP:7011" \
		"$LAB_IP:7012" | tee /tmp/sampled
	sed 's/^/# /' /tmp/sampled >&2
	grep -q 'all right' /tmp/sampled
}

owners=()
load
modprobe sch_netem || { echo "not ok 1 - netem"; exit 1; }
if [ "$LAB_NODE" = 0 ]; then
	check "two owners" eval 'owner 0 7000 && owner 1 7001'
else
	check "an owner beside the reader" owner 2 7002
fi
lab-barrier exporting 60
[ "$LAB_NODE" = 0 ] || check "300,000 rows" gathers 6 50000
lab-barrier whole 200
tc qdisc replace dev "$LAB_NETDEV" root netem loss 1%
lab-barrier lossy 60
[ "$LAB_NODE" = 0 ] || check "over a wire that loses one packet in a hundred" gathers 1 50000
lab-barrier lossy-done 500
tc qdisc del dev "$LAB_NETDEV" root
[ "$LAB_NODE" = 0 ] || check "owners that cannot be reached, and a deadline" ends_in_time
lab-barrier late 120
if [ "$LAB_NODE" = 0 ]; then
	check "features of a graph, two thirds" eval 'features 0 7010 && features 1 7011'
else
	check "features of a graph, the last third" features 2 7012
fi
lab-barrier features 60
[ "$LAB_NODE" = 0 ] || check "neighbours are sampled, with the right features" samples
lab-barrier sampled 200
if [ "$LAB_NODE" = 0 ]; then
	lab-barrier reading 100
	kill -9 "${owners[0]}"
else
	check "an owner that goes" loses_an_owner
fi
lab-barrier over 100
kill "${owners[@]}" 2>/dev/null
wait
check "rmmod" rmmod rdmatensor
exit $failed
