#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# memories.sh ROUNDS: fetches into memory of each kind from memory of that kind, beside kernel pages;
# and in strict mode at both ends, beside pool mode: in turn, on one node, whose kernel has huge
# pages and a heap of dma-bufs. Lines as guest.sh's, into LAB_OUT/raw-memories.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
rounds=${1:-5}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
raw=$LAB_OUT/raw-memories

# server PORT ARGS: one that is ready when this returns
server() {
	local port=$1
	shift
	spawn ready "/tmp/server.$port" "$tool" perf --server --listen "$LAB_IP:$port" --json \
		--max-size 1M "$@" || die "no server on port $port"
	servers+=("$spawned")
}

# client PORT FILTER ARGS: one run, and of its JSON what FILTER takes
client() {
	local port=$1 filter=$2
	shift 2
	timeout 60 "$tool" perf "$LAB_IP:$port" --json "$@" >/tmp/perf.json || die "perf $* failed"
	jq -r ".[0] | $filter" /tmp/perf.json
}

# bandwidth PORT ARGS: MiB/s
bandwidth() {
	client "$1" '.bytes_per_second / 1048576' "${@:2}" -s 1M -q 8 -n 48
}

# beside NAME PORT ARGS: in turn with kernel pages; every second time after them, for what comes first
# may find other caches
beside() {
	local name=$1 port=$2
	shift 2
	((turn % 2)) || record "$name" ours "$(bandwidth "$port" "$@")"
	record "$name" peer "$(bandwidth 7040)"
	((turn % 2 == 0)) || record "$name" ours "$(bandwidth "$port" "$@")"
}

servers=()
rm -f "$raw"
# 1 MiB and all that is shorter to publish from, and 8 of 1 MiB to fetch into
echo 16 >/proc/sys/vm/nr_hugepages
[ "$(cat /proc/sys/vm/nr_hugepages)" = 16 ] || die "no 16 huge pages are left"
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
declare -A port=([kernel]=7040 [anon]=7041 [memfd]=7042 [huge]=7043 [dmabuf]=7044)
for kind in "${!port[@]}"; do
	server "${port[$kind]}" --memory "$kind"
done
RDMATENSOR_MR_MODE=2 server 7045

for turn in $(seq "$rounds"); do
	for kind in anon memfd huge dmabuf; do
		beside "fetch_bw_1m_$kind" "${port[$kind]}" --memory "$kind"
	done
	export RDMATENSOR_MR_MODE=2
	record fetch_lat_4k_strict ours "$(client 7045 .lat_us.p50 -m lat -s 4096 -n 1000)"
	strict=$(bandwidth 7045)
	unset RDMATENSOR_MR_MODE
	record fetch_bw_1m_strict ours "$strict"
	record fetch_bw_1m_strict peer "$(bandwidth 7040)"
	record fetch_lat_4k_strict peer "$(client 7040 .lat_us.p50 -m lat -s 4096 -n 1000)"
done
kill "${servers[@]}"
wait
rmmod rdmatensor || die "rmmod failed"
