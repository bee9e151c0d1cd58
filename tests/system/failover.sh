# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# A bond fails over to a network device with another hardware address: channels over it end
# and say why, who fetches connects again, and who listens goes on. Sourced by run.sh, with
# the module loaded, where the kernel has bonding (UML's has not).

tool=$LAB_BUILD/ulib/bin/rdmatensor

# within_a_minute COMMAND...
within_a_minute() {
	local end=$((SECONDS + 60))
	while ((SECONDS < end)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "# not within a minute: $*"
	return 1
}

bond_up() {
	local i
	ip link add bond7 type bond mode active-backup fail_over_mac active miimon 50 || return 1
	for i in 1 2; do
		ip link add slave$i type dummy && ip link set slave$i master bond7 &&
			ip link set slave$i up || return 1
	done
	ip link set bond7 up && ip addr add 10.7.0.1/24 dev bond7 &&
		rdma link add rxe7 type rxe netdev bond7
}

states() { "$tool" show channels -j | jq -Mr '.[].state' | sort | uniq -c | xargs; }
up_on_both_ends() { [[ $(states) == "2 up" ]]; }
# By contexts: while the bond changes over, soft-RoCE may be unable to send, and end the next channel too
both_ended() { (($(grep '"channel down"' /tmp/failover.events | jq .context | sort -u | wc -l) == 2)); }
# The end that hears of it first disconnects, which may be what the other one hears first
told() { grep '"channel down"' /tmp/failover.events | grep -q 'hardware address has changed'; }
active() { cat /sys/class/net/bond7/bonding/active_slave; }

fails_over() {
	local other=slave1
	within_a_minute up_on_both_ends || { cat /tmp/failover.*; return 1; }
	[[ $(active) != slave1 ]] || other=slave2
	ip link set bond7 type bond active_slave $other || return 1
	within_a_minute both_ended && within_a_minute told && return
	cat /tmp/failover.*
	return 1
}

# By the other network device, and by the same two ends
connects_again() {
	within_a_minute grep -q ': connecting again$' /tmp/failover.client &&
		within_a_minute up_on_both_ends && return
	cat /tmp/failover.*
	return 1
}

perf_again() { RDMA_DEVICE=rxe7 "$tool" perf 10.7.0.1:7100 -s 4096 -n 10 --worker again &>/tmp/failover.again; }

goes_on_listening() {
	within_a_minute perf_again && return
	cat /tmp/failover.again
	return 1
}

# Of 6.12's soft-RoCE: a connection message that cannot be sent, as while the bond changes over, leaves
# its management queue pair in the error state, and nothing connects to the device any more
deaf() { rdma resource show qp link rxe7/1 | grep -q 'type GSI state ERR'; }

bond_down() {
	rdma link del rxe7
	ip link del bond7
	ip link del slave1
	ip link del slave2
}

# What has been seen: commands
made=false said=false again=false listens=false

over_a_bond() {
	local monitor server client
	made=false said=false again=false listens=false
	bond_up || return
	made=true
	"$tool" monitor -j >/tmp/failover.events 2>&1 &
	monitor=$!
	within_a_minute grep -q . "/proc/$monitor/net/netlink"
	# Nothing is sent meanwhile, so nothing else can tell
	export RDMATENSOR_PROBE_MS=600000
	RDMA_DEVICE=rxe7 "$tool" perf --server --listen 10.7.0.1:7100 --worker server \
		>/tmp/failover.server 2>&1 &
	server=$!
	within_a_minute eval '"$tool" show contexts -j | jq -e ".[0].listen_port == 7100"'
	RDMA_DEVICE=rxe7 "$tool" fetch 10.7.0.1:7100 nobody.has.this --timeout 600 --worker client \
		-o /tmp/failover.safetensors >/tmp/failover.client 2>&1 &
	client=$!
	if fails_over; then
		said=true
		! connects_again || again=true
		! goes_on_listening || listens=true
	fi
	kill $client $server $monitor 2>/dev/null
	wait $client $server $monitor
	unset RDMATENSOR_PROBE_MS
	within_a_minute eval '[[ $("$tool" show contexts -j) == "[]" ]]'
}

for try in 1 2 3; do
	over_a_bond >/tmp/failover.log 2>&1
	sed 's/^/# /' /tmp/failover.log
	! $listens || break
	rdma resource show qp link rxe7/1 | sed 's/^/# /'
	deaf || break
	echo "# soft-RoCE's management queue pair has failed: try $try"
	((try == 3)) || bond_down
done
check "a bond of two network devices" $made
check "channels over a bond that fails over say why they end" $said
check "who fetches over it says so and connects again" $again
check "who listens on it goes on" $listens
bond_down
