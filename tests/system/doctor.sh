#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# doctor.sh: what `rdmatensor doctor` says where something is wrong, as root in a guest
# without an RDMA device: one thing after the other, up to where all is well.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor

# says STATUS "VERDICT CHECK" REMEDY [OPTION]...: the visit ends with STATUS, and there is
# such a line, with these words in its remedy ("": it needs none)
says() {
	local status=$1 line=$2 remedy=$3 got rc=0
	shift 3
	got=$("$tool" doctor -j "$@") || rc=$?
	jq . <<<"$got"
	[[ $rc == "$status" ]] || { echo "status $rc"; return 1; }
	jq -e --arg line "$line" --arg remedy "$remedy" '.checks | any(
		"\(.verdict) \(.check)" == $line and
		if $remedy == "" then has("remedy") | not else .remedy // "" | contains($remedy) end)' \
		<<<"$got" >/dev/null
}

worst() { [[ $("$tool" doctor -j "${@:2}" | jq -r .verdict) == "$1" ]]; }

# The same as text: a line for each check, an arrow before each remedy
as_text() {
	local text
	text=$("$tool" doctor "$@")
	echo "$text"
	[[ $(grep -cE '^(OK|WARN|FAIL) +[a-z]+ +[^ ]' <<<"$text") == \
		$("$tool" doctor -j "$@" | jq '.checks | length') ]]
}

has_gids() {
	local i
	for ((i = 0; i < 100; i++)); do
		(($(grep -v '0000:0000:0000:0000:0000:0000:0000:0000' \
			/sys/class/infiniband/r1/ports/1/gids/* 2>/dev/null | wc -l) == $1)) && return
		sleep 0.05
	done
	return 1
}

check "no module" says 1 "FAIL module" "modprobe rdmatensor"
check "as text" eval 'as_text && "$tool" doctor | grep -q "^ *-> modprobe"'
load
check "no device" says 1 "FAIL device" "rdma link add rxe0 type rxe netdev"
# Of several the one that peers can reach, whatever it is called
ip link add a0 type dummy
ip link add b0 type dummy
ip link add c0 type dummy
ip link set b0 up
ip addr add 10.7.0.1/24 dev b0
ip link set c0 up
ip link set d0 down
check "and what to make one over" says 1 "FAIL device" "netdev b0"
ip link del a0
ip link del b0
ip link del c0
ip link set d0 up
ip link add n1 type dummy
ip link set n1 mtu 1500 up
rdma link add r1 type rxe netdev n1
ip link set n1 down
check "a device that is down" says 1 "FAIL port" "ip link set n1 up"
rdma link del r1
ip link set n1 up
rdma link add r1 type rxe netdev n1
has_gids 1
for ((i = 0; i < 100; i++)); do
	[[ -n $(ip -6 addr show dev n1 scope link -tentative) ]] && break
	sleep 0.05
done
check "link-local GIDs only" says 1 "WARN gid" "ip addr add"
check "which is no reason to fail" worst WARN
ip addr add 10.9.0.1/24 dev n1
has_gids 2

mknod /tmp/rdmatensor c 10 "$(sed -n 's/ rdmatensor$//p' /proc/misc)"
chmod 660 /tmp/rdmatensor
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
		"$tool" doctor --device-file /tmp/rdmatensor -j
}
no_permission() {
	local got
	got=$(as_nobody) && return 1
	echo "$got"
	jq -e '.checks | any(.verdict == "FAIL" and .check == "file" and
		(.text | contains("may not open")) and (.remedy | contains("be root")))' <<<"$got"
}
check "no permission" no_permission
little_memory() {
	local got
	chmod 666 /tmp/rdmatensor
	got=$(ulimit -l 1024 && as_nobody)
	echo "$got"
	jq -e '.checks | any(.verdict == "OK" and .check == "memlock" and
		(.text | contains("pools do not count") and contains("1024 KiB")))' <<<"$got" ||
		return 1
	got=$(ulimit -l 771 && as_nobody)
	echo "$got"
	jq -e '.checks | any(.verdict == "WARN" and .check == "memlock" and
		(.text | contains("771 KiB") and contains("772")))' <<<"$got" || return 1
	"$tool" set memlock 1 || return 1
	got=$(ulimit -l 1024 && as_nobody)
	"$tool" set memlock 0
	echo "$got"
	jq -e '.checks | any(.verdict == "WARN" and .check == "memlock" and
		(.remedy | contains("ulimit -l")))' <<<"$got"
}
check "little memory may be locked" little_memory

export RDMA_QP_MTU=4096
check "an MTU that the network device does not carry" says 1 "FAIL mtu" "raise the network device's MTU"
export RDMA_QP_MTU=256
check "an MTU that is small" says 1 "WARN mtu" "1500"
unset RDMA_QP_MTU
export RDMA_DEVICE=nosuch
check "a device that is not there" says 1 "FAIL start" "--device one that"
unset RDMA_DEVICE
check "an address to listen at that is nobody's" says 1 "FAIL start" "another address with --listen" \
	--listen 192.0.2.9:1
check "a file that is another's" says 1 "FAIL file" "drop --device-file" --device-file /dev/null
one_pool() {
	RDMATENSOR_MAX_POOLS=1 "$tool" doctor -j | tee /dev/stderr | jq -e '.checks | any(
		.check == "memory" and .verdict == "FAIL" and (.text | contains("max_pools")))'
}
check "a context that may have one pool" one_pool
echo nosuch >/sys/module/rdmatensor/parameters/device
check "a device of the module's parameter that is not there" says 1 "FAIL start" \
	"parameter device is nosuch: rdmatensor set device NAME, or ''"
"$tool" set device ''

check "a peer that is no address" says 1 "FAIL peer" "host:port" 10.9.0.1:x
check "a peer without a route" says 1 "FAIL route" "ip route add" 192.0.2.1
check "a peer that is not there" says 1 "FAIL peer" "ping" 10.9.0.77
check "which is nothing of this machine's" eval \
	'"$tool" doctor 10.9.0.77 | grep -q "^This machine is well, but"'
check "a peer that does not listen" says 1 "FAIL peer" "perf --server" 10.9.0.1:7002
ip link add n2 type dummy
ip addr add 10.8.0.1/24 dev n2
ip link set n2 up
check "a peer by a loopback address" says 1 "FAIL route" "an address of the RDMA device" 127.0.0.1
check "a peer that is reached over another device" says 1 "FAIL route" "--device n2" 10.8.0.9
ip link del n2

"$tool" serve "$LAB_BUILD/demo/model.safetensors" --listen 10.9.0.1:7003 >/tmp/serve 2>&1 &
serve=$!
"$tool" perf --server --listen 10.9.0.1:7004 >/tmp/perf 2>&1 &
perf=$!
for ((i = 0; i < 200; i++)); do
	grep -q serving /tmp/serve && grep -q 'perf server' /tmp/perf && break
	sleep 0.05
done
check "a peer that serves a file" says 0 "OK fetch" "" 10.9.0.1:7003
"$tool" gather --server --rows 0:10 --listen 10.9.0.1:7005 >/tmp/rows 2>&1 &
rows=$!
for ((i = 0; i < 200; i++)); do
	grep -q exporting /tmp/rows && break
	sleep 0.05
done
# Of two addresses, the first of which leads elsewhere
ip link add n2 type dummy
ip addr add 10.8.0.1/24 dev n2
ip link set n2 up
echo "10.8.0.9 twin
10.9.0.1 twin" >>/etc/hosts
check "a peer of several addresses" says 0 "OK fetch" "" twin:7004
ip link del n2
nowhere() {
	timeout 20 "$tool" "$@" >/dev/full 2>/tmp/said
	[[ $? == 1 ]] && grep 'write the output: ' /tmp/said
}
check "a server that cannot say that it is ready" nowhere serve "$LAB_BUILD/demo/model.safetensors" \
	--listen 10.9.0.1:7006
check "nor can one of perf" nowhere perf --server --listen 10.9.0.1:7006
mounted() {
	local mode
	echo old >/tmp/mounted
	touch /tmp/place
	mount --bind /tmp/mounted /tmp/place || return 1
	"$tool" fetch 10.9.0.1:7003 --all -o /tmp/place 2>/tmp/said
	mode=$?
	umount /tmp/place
	[[ $mode == 1 && $(</tmp/mounted) == old ]] && grep 'is a mount point' /tmp/said &&
		! compgen -G '/tmp/.rdmatensor.*'
}
check "an output that cannot be replaced" mounted
check "a peer without a tensor to try" says 1 "WARN fetch" "perf --server" 10.9.0.1:7005
kill $rows
wait $rows
check "all is well" says 0 "OK fetch" "" 10.9.0.1:7004
check "and every line says so" eval \
	'"$tool" doctor -j 10.9.0.1:7004 | jq -e ".verdict == \"OK\" and (.checks | length >= 10 and all(.verdict == \"OK\"))"'
check "which is text, too" as_text 10.9.0.1:7004
check "without a peer too" says 0 "OK itself" ""
check "in a terminal's width" eval '(($("$tool" doctor | grep -v "choice\|->" | wc -L) <= 80))'

# A second one that is down does not matter, as long as it is not meant
ip link add n3 type dummy
rdma link add r3 type rxe netdev n3
check "another device that is down" says 1 "WARN port" "ip link set n3 up"
RDMA_DEVICE=r1
export RDMA_DEVICE
check "which is not meant" says 0 "OK itself" "" 10.9.0.1:7004
unset RDMA_DEVICE
rdma link del r3

kill $serve $perf
wait $serve $perf
rdma link del r1
unload
exit "$failed"
