#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One node of the demo: node 0 serves MODEL, node 1 fetches all of it for three
# steps; a single node does both. Into LAB_OUT: the fetched file, the table of
# steps, and the totals.
set -euo pipefail
model=$1
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
port=18521

die() {
	echo "node ${LAB_NODE:?}: $*" >&2
	exit 1
}

modprobe -a libcrc32c ib_core rdma_cm 2>/dev/null || true
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed: see dmesg"

serve() {
	"$tool" serve "$model" --listen "${LAB_IP:-}:$port" --worker server --steps 3 --json \
		>/tmp/rdmatensor-demo.server 2>&1 &
	server=$!
	for _ in $(seq 600); do
		grep -q ready /tmp/rdmatensor-demo.server && return
		kill -0 $server || die "$(cat /tmp/rdmatensor-demo.server)"
		sleep 0.1
	done
	die "the server did not come up"
}

# What the fetching side counted, and what the serving side wrote
fetch() {
	local peer=$1
	"$tool" fetch "$peer:$port" --all --steps 3 --json -o "$LAB_OUT/got.safetensors" \
		>"$LAB_OUT/steps.json"
	jq -r '
		(if type == "array" then . else .steps end) as $steps |
		["step", "tensors", "bytes", "messages", "RDMA writes", "ms"],
		($steps[] | [.step, .tensors, .bytes, .control_messages, .rdma_writes, (.seconds * 1000 | round)])
		| @tsv' "$LAB_OUT/steps.json" >/tmp/rdmatensor-demo.tsv
	awk -F '\t' '{ printf "%6s %9s %12s %10s %13s %8s\n", $1, $2, $3, $4, $5, $6 }' \
		/tmp/rdmatensor-demo.tsv >"$LAB_OUT/steps"
	awk -F '\t' 'END { print $2, $3 }' /tmp/rdmatensor-demo.tsv >"$LAB_OUT/total"
}


if [ "$LAB_NODES" = 2 ] && [ "$LAB_NODE" = 0 ]; then
	serve
	lab-barrier serving 120
	lab-barrier fetched 200
	kill $server
	wait $server || die "the server failed: $(cat /tmp/rdmatensor-demo.server)"
elif [ "$LAB_NODES" = 2 ]; then
	lab-barrier serving 120
	fetch "$LAB_PEER_IP"
	lab-barrier fetched 60
else
	serve
	address=$(sed -n 's/.*"address":"\([^"]*\):[0-9]*".*/\1/p' /tmp/rdmatensor-demo.server)
	fetch "$address"
	kill $server
	wait $server || die "the server failed: $(cat /tmp/rdmatensor-demo.server)"
fi
rmmod rdmatensor || die "rmmod failed"
