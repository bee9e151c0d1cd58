# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A program's RDMA device is removed while it waits for tensors, or for peers: it ends, and says why.
# Sourced by run.sh, with the module loaded.

goer=$LAB_BUILD/ulib/bin/rdmatensor

device_up() {
	# One that a case before has left
	ip link del d8 2>/dev/null
	ip link add d8 type dummy && ip link set d8 up && ip addr add 10.8.0.1/24 dev d8 &&
		rdma link add rxe8 type rxe netdev d8
}

device_down() { rdma link del rxe8 && ip link del d8; }

# server_up PORT FILE: one that waits for peers, and says so in FILE; $server is its pid
server_up() {
	: >"$2"
	RDMA_DEVICE=rxe8 timeout 200 "$goer" perf --server --listen "10.8.0.1:$1" >"$2" 2>&1 &
	server=$!
	until_true grep -q 'perf server' "$2" && return
	cat "$2"
	return 1
}

two_wait() { "$goer" show requests -j | jq -e 'length >= 2' >/dev/null; }

# Also where the server hears of the removal first: then its peer is disconnected, and fails to connect again
fetch_ends() {
	local server fetcher status begun=$SECONDS
	server_up 7101 /tmp/goes.server || return 1
	RDMA_DEVICE=rxe8 timeout 200 "$goer" fetch 10.8.0.1:7101 no-such.one no-such.two -t 150 \
		-o /tmp/goes.out >/tmp/goes.err 2>&1 &
	fetcher=$!
	until_true two_wait || { cat /tmp/goes.err; return 1; }
	device_down || return 1
	wait $fetcher
	status=$?
	cat /tmp/goes.err
	kill $server
	wait $server
	((status == 1 && SECONDS - begun < 120)) && grep -q "RDMA device is gone" /tmp/goes.err
}

# Nobody is connected to it, so that no channel goes down
server_ends() {
	local server status
	server_up 7102 /tmp/goes.alone || return 1
	device_down || return 1
	wait $server
	status=$?
	cat /tmp/goes.alone
	((status == 1)) && grep -q 'device rxe8 is gone: start again when it is back' /tmp/goes.alone
}

one_waits() { "$goer" show requests -j | jq -e 'length == 1' >/dev/null; }

# The example that polls and reaps by itself: its fetch is told, and the next step cannot begin
quorum_ends() {
	local server quorum status
	server_up 7104 /tmp/goes.peer || return 1
	RDMA_DEVICE=rxe8 timeout 200 "$LAB_BUILD/ulib/bin/quorum" 1 no-such.one 0 2 150000 10.8.0.1:7104 \
		>/tmp/goes.quorum 2>&1 &
	quorum=$!
	until_true one_waits || { cat /tmp/goes.quorum; return 1; }
	device_down || return 1
	wait $quorum
	status=$?
	wait $server
	status+=" $?"
	echo "$status: $(</tmp/goes.quorum)"
	[[ $status == "1 1" ]] && (($(grep -c '^step [01]: 0 of 1:, without 10.8.0.1:7104' /tmp/goes.quorum) == 2))
}

# What a keeper has is of no use any more, and who serves again hears how to be rid of it
keeper_is_named() {
	local server status again=("$goer" serve "$LAB_BUILD/demo/model.safetensors" --keep /tmp/goes.keeper)
	RDMA_DEVICE=rxe8 timeout 200 "${again[@]}" --listen 10.8.0.1:7103 >/tmp/goes.kept 2>&1 &
	server=$!
	until_true grep -q serving /tmp/goes.kept || { cat /tmp/goes.kept; return 1; }
	device_down || return 1
	wait $server
	status=$?
	timeout 200 "${again[@]}" --listen :7103 >>/tmp/goes.kept 2>&1
	status+=" $?"
	"$goer" domain end /tmp/goes.keeper
	status+=" $?"
	cat /tmp/goes.kept
	[[ $status == "1 1 0" ]] && grep -q 'was removed: end it with `rdmatensor domain end /tmp/goes.keeper`' /tmp/goes.kept
}

check "an RDMA device to be removed" device_up
check "fetch ends when its device does" fetch_ends
check "an RDMA device to be removed again" device_up
check "a server without a peer ends when its device does" server_ends
check "an RDMA device to be removed from a quorum" device_up
check "a quorum ends when its device does" quorum_ends
check "an RDMA device to be removed with a keeper" device_up
check "a keeper whose device has gone is named" keeper_is_named
