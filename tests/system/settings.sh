#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# settings.sh: two workers with unlike settings, each of which connects to the other once, as
# root in a guest with one node. What each has chosen holds for what it sends, whoever
# connected; of path MTU and READs at the same time the lesser holds, at both ends. All as
# the device has it.
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor

# What each has chosen. Soft-RoCE does not remember a service level: tests/kunit/qp.c looks at
# that. Patient enough for a machine that has other things to do
# shellcheck disable=SC2034 # by name, in tool_as()
short=(RDMA_QP_MTU=1024 RDMA_QP_TIMEOUT=15 RDMA_QP_RETRY_COUNT=2 RDMATENSOR_RNR_RETRY=1
	RDMA_TRAFFIC_CLASS=32 RDMA_QP_QUEUE_DEPTH=200 RDMATENSOR_MR_MODE=2)
# shellcheck disable=SC2034
long=(RDMA_QP_MTU=2048 RDMA_QP_TIMEOUT=17 RDMA_QP_RETRY_COUNT=7 RDMATENSOR_RNR_RETRY=3
	RDMA_TRAFFIC_CLASS=96 RDMA_QP_QUEUE_DEPTH=700)

# tool_as WORKER ARGUMENT...: $tool_as is the tool's, by that worker's settings
tool_as() {
	local -n settings=$1
	tool_as=(env RDMATENSOR_LANES=2 RDMATENSOR_GATHER_LANES=2 "${settings[@]}" "$tool"
		"${@:2}" --worker "$1")
}

# attrs WORKER LANES: what its device says of its lanes, or read_lanes: two, and alike
attrs() {
	"$tool" show channels -j | jq -Mc --arg worker "$1" \
		"[.[] | select(.worker == \$worker).$2[] |
		  [.mtu, .timeout, .retry_count, .rnr_retry, .traffic_class]] |
		 if length == 2 then unique[] else . end"
}

# The timeout is two more than asked: soft-RoCE takes a quarter of it; and 7 retries, which it
# takes for no end, are 6 (see adapter.c)
declare -A own=([short]="1024,17,2,1,32" [long]="1024,19,6,3,96")

holds() {
	local worker
	for worker in short long; do
		[[ $(attrs $worker "$1") == "[${own[$worker]}]" ]] || {
			echo "$worker: $(attrs $worker "$1"), expected [${own[$worker]}]"
			return 1
		}
	done
}

# Each side's channel is in its own mode, and fetches and gathers work between them
modes() {
	local got
	got=$("$tool" show channels -j | jq -Mc '[.[] | {(.worker): .mr_mode}] | add | [.short, .long]')
	[[ $got == '["strict","pool"]' ]] || { echo "$got, expected strict and pool"; return 1; }
}

# depth REQUESTS: as soft-RoCE rounds it up, with the place for the drain
depth() {
	local n=2
	while ((n < $1 + 2)); do n=$((n * 2)); done
	echo $((n - 1))
}

# Both queues, lane by lane: 64 message slots, and of requests what is left of the depth, 256
# at most. What is read is received by nobody
queues() {
	local worker deep got want
	for worker in short long; do
		[[ $worker == short ]] && deep=200 || deep=700
		got=$("$tool" show channels -j | jq -Mc --arg worker $worker \
			"[.[] | select(.worker == \$worker).$1[] | [.send_depth, .recv_depth]]")
		want=$2
		want=${want//DEEP/$(depth $deep)}
		want=${want//FIRST/$(depth $((deep < 385 ? deep : 385)))}
		want=${want//OTHER/$(depth $((deep < 385 ? deep - 129 + 1 : 257)))}
		[[ $got == "$want" ]] || {
			echo "$worker: $got, expected $want"
			return 1
		}
	done
}

# It stands when both ends of both lanes do
stands() {
	local i
	for ((i = 0; i < 600; i++)); do
		kill -0 "$2" || return 1
		[[ $("$tool" show channels -j | jq "[.[].$1[]?] | length" 2>/dev/null) == 4 ]] && return
		sleep 0.1
	done
	return 1
}

# reads OWNER READER NUMBER: what the device has of their lanes for READs: the one answers so
# many at the same time, the other one begins so many
reads() {
	local got
	got=$("$tool" show channels -j | jq -Mc --arg owner "$1" --arg reader "$2" \
		'[$owner, $reader] as $both |
		 [.[] | {(.worker): [.read_lanes[] | [.reads_in, .reads_out]] | unique}] | add |
		 [.[$both[]]]')
	[[ $got == "[[[$3,0]],[[0,$3]]]" ]] && return
	echo "$got, expected $3 of the one that owns the rows, and of the other"
	return 1
}

# less NAME=NUMBER: the device does so many READs at the same time; without an argument all
# that it can
less() {
	if (($#)); then
		insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor_lesser.ko" device="$LAB_RDMA_DEV" "$@"
	else
		rmmod rdmatensor_lesser
	fi
}

# serve_as WORD: $tool_as as the server, which has said that; ends() knows it if it has not, too
serve_as() {
	local status
	spawn "$1" /tmp/server "${tool_as[@]}"
	status=$?
	server=$spawned
	return $status
}

# fetches SERVER CLIENT: channels, whose contents are longer than any packet
fetches() {
	tool_as "$1" perf --server --listen "$LAB_IP:7000" --json
	serve_as ready || return 1
	tool_as "$2" perf "$LAB_IP:7000" -s 65536 -n 50 -j
	"${tool_as[@]}" >/tmp/perf || return 1
	[[ $(jq -c '.[0] | [.fetched, .fetch_errors]' /tmp/perf) == '[50,0]' ]] || return 1
	tool_as "$2" perf "$LAB_IP:7000" -s 65536 -D 600
	"${tool_as[@]}" >/tmp/client 2>&1 &
	client=$!
	stands lanes $client
}

# gathers READER OWNER: read lanes; rows are compared
gathers() {
	tool_as "$2" gather --server --rows 0:1000 --row-bytes 8192 --listen "$LAB_IP:7000"
	serve_as exporting || return 1
	tool_as "$1" gather "$LAB_IP:7000" -n 2 -r 200 -j
	"${tool_as[@]}" >/tmp/gather || return 1
	[[ $(jq .rows /tmp/gather) == 400 ]] || return 1
	tool_as "$1" gather "$LAB_IP:7000" -r 200 -D 600
	"${tool_as[@]}" >/tmp/client 2>&1 &
	client=$!
	stands read_lanes $client
}

ends() {
	kill -9 $client $server
	wait $client $server
	until [[ $("$tool" show contexts -j) == '[]' ]]; do sleep 0.1; done
} 2>/dev/null

load
for worker in short long; do
	[[ $worker == short ]] && other=long || other=short
	check "$other fetches from $worker" fetches $worker $other
	check "each one's settings hold for what it sends, the lesser MTU for both" holds lanes
	check "each one's memory is open as it says" modes
	check "send queues are as deep as asked, receive queues as what can arrive" \
		queues lanes '[[DEEP,FIRST],[DEEP,OTHER]]'
	ends
	# Once the owner's device does less than the reader's could use, and once the reader's
	[[ $worker == short ]] && one=bears || one=begins
	check "a device that $one one READ at a time" less $one=1
	check "$other gathers from $worker" gathers $other $worker
	check "so they do on lanes for READs" holds read_lanes
	check "one READ at a time, as the device on one side $one no more" reads $worker $other 1
	ends
	check "a device that does all it can" less
done
unload
exit "$failed"
