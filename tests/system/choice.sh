#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# choice.sh: which device, port and GID a context takes, as root in a guest without an
# RDMA device: soft-RoCE over network devices whose addresses come and go, in odd orders,
# so that their GID tables have holes.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor

# starts VARIABLE=VALUE... -- DEVICE GID WORDS: it starts, on that device and GID, and
# says so by those words, in its answer and in the log; and the GID is at that index of the
# device's table
starts() {
	local vars=() got index table said
	while [[ $1 != -- ]]; do
		vars+=("$1")
		shift
	done
	dmesg -C
	got=$(env "${vars[@]}" "$tool" info --start -j) || return 1
	echo "$got"
	said=$(dmesg | grep "rdmatensor: worker '.*': started: device $2 ")
	[[ $said == *"$3"* && $said == *"$4"* ]] || { echo "the log says: $said"; return 1; }
	[[ $(jq -r '.device + " " + .gid' <<<"$got") == "$2 $3" ]] || return 1
	[[ $(jq -r .choice <<<"$got") == *"$4"* ]] || return 1
	index=$(jq .gid_index <<<"$got")
	table=$(<"/sys/class/infiniband/$2/ports/1/gids/$index")
	echo "in the table at $index: $table"
	case $3 in
	*.*)	[[ $table == "0000:0000:0000:0000:0000:ffff:"* ]] &&
			[[ ${table##*ffff:} == "$(printf '%02x%02x:%02x%02x' ${3//./ })" ]] ;;
	*)	[[ ${table%%:*} == "${3%%:*}" ]] ;;
	esac
}

# fails VARIABLE=VALUE... -- WORDS...: it does not, and says these words
fails() {
	local vars=() got
	while [[ $1 != -- ]]; do
		vars+=("$1")
		shift
	done
	shift
	if got=$(env "${vars[@]}" "$tool" info --start 2>&1); then
		echo "$got"
		return 1
	fi
	echo "$got"
	for words; do
		[[ $got == *"$words"* ]] || { echo "without: $words"; return 1; }
	done
}

netdev() {
	ip link add "$1" type dummy && ip link set "$1" mtu 9000 up
}

gids() {
	grep -v '0000:0000:0000:0000:0000:0000:0000:0000' /sys/class/infiniband/"$1"/ports/1/gids/* \
		2>/dev/null | sed 's|.*/||'
}

# The tables follow the addresses by a work of their own: until DEVICE has N of them
has_gids() {
	local i
	for ((i = 0; i < 100; i++)); do
		[[ $(gids "$1" | wc -l) == "$2" ]] && return
		sleep 0.05
	done
	gids "$1"
	return 1
}

link_local() { ip -6 -o addr show dev "$1" scope link | sed -E 's/.*inet6 ([^/]*).*/\1/'; }

load
check "no device" fails -- "there is no RDMA device" "rdma link add"

netdev n1
rdma link add r1 type rxe netdev n1
check "its GIDs are there" has_gids r1 1
check "link-local only" starts -- r1 "$(link_local n1)" "link-local for want of another"

ip addr add 10.1.0.1/24 dev n1
has_gids r1 2
check "an IPv4 address comes before link-local" starts -- r1 10.1.0.1 "the only active one"

ip addr del 10.1.0.1/24 dev n1
ip addr add fd00:1::1/64 dev n1
has_gids r1 2
check "a global IPv6 address does too" starts -- r1 fd00:1::1 "the first RoCE v2 one"

# Three more; the first two go again, and leave holes before the third
ip addr add 10.1.0.2/24 dev n1
ip addr add 10.1.0.3/24 dev n1
ip addr add fd00:1::4/64 dev n1
has_gids r1 5
ip addr del fd00:1::1/64 dev n1
ip addr del 10.1.0.2/24 dev n1
# A secondary one goes with its primary, unless it is promoted
ip addr show dev n1 | grep -q 10.1.0.3 || ip addr add 10.1.0.3/24 dev n1
has_gids r1 3
gids r1 | sed 's/^/# /'
check "what comes behind holes" starts -- r1 \
	"$([[ $(gids r1 | sed -n 2p) == *ffff* ]] && echo 10.1.0.3 || echo fd00:1::4)" "the first RoCE v2"
hole=$(for i in {0..9}; do gids r1 | grep -q "^$i:" || { echo "$i"; break; }; done)
check "an index that is a hole" fails RDMA_GID_INDEX="$hole" -- "gid_index $hole of r1/1 is empty"
check "an index beyond the table" fails RDMA_GID_INDEX=255 -- gid_index
last=$(gids r1 | tail -n 1 | cut -d: -f1)
check "an index that is there" starts RDMA_GID_INDEX="$last" -- r1 \
	"$([[ $(gids r1 | tail -n 1) == *ffff* ]] && echo 10.1.0.3 || echo fd00:1::4)" named

# A second device
netdev n2
ip addr add 10.2.0.1/24 dev n2
ip addr add fd00:2::1/64 dev n2
rdma link add r2 type rxe netdev n2
has_gids r2 3
netdev n3
ip addr add 10.3.0.1/24 dev n3
check "two devices: an error that lists them" fails -- "several RDMA devices are active" r1/1 r2/1 \
	RDMA_DEVICE
check "and the tool's remedy" eval \
	'! "$tool" info --start 2>/tmp/err && grep -q "several RDMA devices.*--device" /tmp/err &&
	 "$tool" info --start --device r2 >/dev/null'
check "by the device's name" starts RDMA_DEVICE=r2 -- r2 10.2.0.1 named
check "by its network device" starts RDMA_DEVICE=n2 -- r2 10.2.0.1 "by its network device"
check "by its IPv4 address" starts RDMA_DEVICE=10.2.0.1 -- r2 10.2.0.1 "by its address"
check "by its IPv6 address" starts RDMA_DEVICE=fd00:2::1 -- r2 fd00:2::1 "by its address"
check "by an address behind holes" starts RDMA_DEVICE=10.1.0.3 -- r1 10.1.0.3 "by its address"
check "by device and port" starts RDMA_DEVICE=r2 RDMA_DEVICE_PORT=1 -- r2 10.2.0.1 "port 1 (named)"
check "by a port that it has not" fails RDMA_DEVICE=r2 RDMA_DEVICE_PORT=2 -- "port 2 is out of range" 1..1
check "by a name that is none" fails RDMA_DEVICE=nosuch0 -- "'nosuch0' is no RDMA device" r1/1 r2/1
check "by a network device without RDMA" fails RDMA_DEVICE=n3 -- "'n3' is no RDMA device" r1/1 r2/1
check "by an address without RDMA" fails RDMA_DEVICE=10.3.0.1 -- "no address of one" r1/1 r2/1
check "by an address of nobody" fails RDMA_DEVICE=fd00:9::9 -- "no address of one"

# As the module's parameter, which the environment overrides
"$tool" set device n2
check "by the module's parameter" starts -- r2 10.2.0.1 "by its network device"
check "and the environment before it" starts RDMA_DEVICE=r1 -- r1 \
	"$([[ $(gids r1 | sed -n 2p) == *ffff* ]] && echo 10.1.0.3 || echo fd00:1::4)" named
"$tool" set device ''

# A node that only gets, of several devices: the one that leads to its peer
by_route() {
	local got
	mkfifo /tmp/enter
	RDMA_DEVICE=r2 timeout 30 "$LAB_BUILD"/system/first <>/tmp/enter >/tmp/offers 2>&1 &
	dmesg -C
	got=$(timeout 30 "$LAB_BUILD"/system/first 10.2.0.1/weights)
	echo >/tmp/enter
	wait $!
	echo "$got, offered: $(</tmp/offers)"
	[[ $got == "1 2 3 4" ]] && dmesg | grep "started: device r2 .*by its address"
}
check "by the way to a node's peer" by_route
no_route() {
	! "$LAB_BUILD"/system/first 10.3.0.1/weights 2>/tmp/said && cat /tmp/said &&
		grep -q "several RDMA devices are active, name one" /tmp/said
}
check "a way that no device has" no_route

# A port that is down is not chosen, and cannot be
ip link set n1 down
check "the other one is the only active one" starts -- r2 10.2.0.1 "the only active one"
check "by the name of one that is down" fails RDMA_DEVICE=r1 -- r1 "set its link up"
check "by a port that is down" fails RDMA_DEVICE=r1 RDMA_DEVICE_PORT=1 -- "r1/1 is DOWN, not ACTIVE"
ip link set n2 down
check "none is active" fails -- "no RDMA device has an active port" "r1/1 DOWN" "r2/1 DOWN"

rdma link del r1
rdma link del r2
unload
exit "$failed"
