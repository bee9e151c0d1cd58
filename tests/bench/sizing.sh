#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sizing.sh [CASE...]: what contexts, channels, pools, tensors and tables take of a node's memory and
# of its RDMA device, counted: by a process that makes many of one kind (sizing.c) on one node, as
# root in a guest. The figures of Documentation/sizing.md:
#
#	tests/lab/run --kernel 6.1 --timeout 1700 --log sizing tests/bench/sizing.sh
#
# For each case, of one of them: all memory of the kernel; what of it a memory cgroup is charged
# for, where the kernel has such groups; queue pairs, memory regions and completion queues; and
# what the module's own list (netlink) has more of than before. A channel and a waiting fetch
# have two ends, both on this node: figures are those of one end, half of what was counted.
# It fails if a case takes no memory, or leaves queue pairs or memory regions. Completion queues are
# shared, and the RDMA core keeps them for the next channel until the device goes: each case begins
# with a device that has none. Lines go to LAB_OUT/sizing, too.
set -u
. tests/bench/record.sh
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
table=$LAB_OUT/sizing
group=/tmp/sizing-groups

# NAME WHAT N ENDS PARAMETER=VALUE...
cases=(
	"context:context 32 1"
	"context, ring_entries 256:context 32 1 RDMATENSOR_RING_ENTRIES=256"
	"context, ring_entries 65536:context 8 1 RDMATENSOR_RING_ENTRIES=65536"
	"channel:channel 32 2"
	"channel, queue_depth 4090:channel 32 2 RDMA_QP_QUEUE_DEPTH=4090"
	"channel, queue_depth 1018:channel 32 2 RDMA_QP_QUEUE_DEPTH=1018"
	"channel, queue_depth 250:channel 32 2 RDMA_QP_QUEUE_DEPTH=250"
	"channel, queue_depth 250, msg_slots 16:channel 32 2 RDMA_QP_QUEUE_DEPTH=250 RDMATENSOR_MSG_SLOTS=16"
	"channel, queue_depth 58, msg_slots 8:channel 32 2 RDMA_QP_QUEUE_DEPTH=58 RDMATENSOR_MSG_SLOTS=8"
	"channel, the same, one of 1000:channel 500 2 RDMA_QP_QUEUE_DEPTH=58 RDMATENSOR_MSG_SLOTS=8 RDMATENSOR_MAX_CHANNELS=500"
	"channel, the same, msg_slot_bytes 1024:channel 32 2 RDMA_QP_QUEUE_DEPTH=58 RDMATENSOR_MSG_SLOTS=8 RDMATENSOR_MSG_SLOT_BYTES=1024"
	"channel, msg_slots 16:channel 32 2 RDMATENSOR_MSG_SLOTS=16"
	"channel, msg_slots 256:channel 32 2 RDMATENSOR_MSG_SLOTS=256"
	"channel, lanes 4:channel 32 2 RDMATENSOR_LANES=4"
	"channel, mr_mode 2:channel 32 2 RDMATENSOR_MR_MODE=2"
	"pool of 1 MiB:pool 64 1"
	"tensor, published:tensor 10000 1"
	"tensor, known to a reader:known 2000 1"
	"fetch that waits:waiting 200 2"
	"fetch that waits behind 256:waiting 2000 2"
	"export of 4 KiB:export 256 1"
	"table, opened:table 256 1"
	"owner of a table, gather_lanes 2, both ends:owner 16 1"
	"owner of a table, gather_lanes 1, both ends:owner 16 1 RDMATENSOR_GATHER_LANES=1"
)

# Pages of the kernel's own: all but what is free, also on the lists of processors, of files and of
# processes
kernel_pages() {
	echo 1 >/proc/sys/vm/stat_refresh 2>/dev/null
	awk '$1 == "nr_free_pages" || $1 == "count:" || $1 == "nr_file_pages" || $1 == "nr_anon_pages" { sum += $2 }
		END { printf "%d\n", -sum }' <(sed 's/per-node stats//' /proc/zoneinfo)
}

# What the kernel is charged for in the group; nothing: there are no such groups
charged() {
	[ -r "$group/sizing/memory.stat" ] || return 0
	sed -n 's/^kernel //p' "$group/sizing/memory.stat"
}

# qp, mr, cq of the device
objects() {
	rdma resource show | grep -oE '(qp|mr|cq) [0-9]+' | sort | tr '\n' ' '
}

# Those that must be as many when all is over
kept() {
	objects | sed 's/cq [0-9]* //'
}

# Contexts, channels and pools of the module's own count
listed() {
	"$tool" metrics >/tmp/sizing-metrics || return 1
	awk '/^rdmatensor_context_channels\{/ { contexts++; channels += $NF }
		/^rdmatensor_context_pools\{/ { pools += $NF }
		END { printf "contexts %d channels %d pools %d\n", contexts, channels, pools }' /tmp/sizing-metrics
}

# A device on which nothing has been done
new_device() {
	rdma link del "$LAB_RDMA_DEV" && rdma link add "$LAB_RDMA_DEV" type rxe netdev "$LAB_NETDEV" ||
		die "there is no new device"
	for _ in $(seq 100); do
		rdma link show "$LAB_RDMA_DEV/1" | grep -q 'state ACTIVE' && return
		sleep 0.1
	done
	die "the new device has no active port"
}

# The state in which all that was freed is free
settled() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# difference BEFORE AFTER: of lists "WORD NUMBER ..."
difference() {
	echo "$1 / $2" | awk '{
		for (i = 1; $i != "/"; i += 2) before[$i] = $(i + 1)
		for (i++; i < NF; i += 2) if ($(i + 1) != before[$i]) printf "%s%s %d", s++ ? ", " : "", $i, $(i + 1) - before[$i]
	}'
}

# measure NAME WHAT N ENDS PARAMETER=VALUE...
measure() {
	local name=$1 what=$2 nr=$3 ends=$4 pages bytes had knew idle word
	shift 4
	new_device
	idle=$(kept)
	mkdir -p "$group/sizing"
	coproc env "$@" bash -c 'echo 0 2>/dev/null >"$0/sizing/cgroup.procs"; exec "$@"' "$group" \
		/tmp/sizing "$what" "$nr"
	read -r word <&"${COPROC[0]}" && [ "$word" = begin ] || die "$name: it did not begin"
	settled
	pages=$(kernel_pages)
	bytes=$(charged)
	had=$(objects)
	knew=$(listed) || die "$name: no metrics"
	echo >&"${COPROC[1]}"
	read -r word <&"${COPROC[0]}" && [ "$word" = made ] || die "$name: it made nothing"
	settled
	pages=$(($(kernel_pages) - pages))
	[ -z "$bytes" ] || bytes=$(($(charged) - bytes))
	had=$(difference "$had" "$(objects)")
	knew=$(difference "$knew" "$(listed)")
	echo >&"${COPROC[1]}"
	wait "$COPROC_PID" || die "$name: it failed"
	((pages > 0)) || die "$name: takes no memory"
	[ "$(kept)" = "$idle" ] || die "$name: left $(difference "$idle" "$(kept)")"
	awk -v name="$name" -v nr="$((nr * ends))" -v pages="$pages" -v bytes="$bytes" -v had="$had" -v knew="$knew" \
		'BEGIN { printf "%-40s %9.2f %9s  %d: %s; listed: %s\n", name, pages * 4 / nr,
			bytes == "" ? "-" : sprintf("%.2f", bytes / 1024 / nr), nr, had, knew }' | tee -a "$table"
}

[ "$(getconf PAGESIZE)" = 4096 ] || die "figures are for pages of 4 KiB"
rm -f "$table"
${CC:-cc} -std=gnu11 -Wall -Wextra -O2 -Iulib/include -o /tmp/sizing tests/bench/sizing.c \
	"$LAB_BUILD/ulib/lib/librdmatensor.a" -pthread || die "sizing is not built"
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
mkdir -p "$group"
mount -t cgroup2 none "$group" && echo +memory >"$group/cgroup.subtree_control" 2>/dev/null ||
	echo "no memory cgroups: what is charged is not counted"
echo "kernel $(uname -r), $(nproc) processors, device $LAB_RDMA_DEV (soft-RoCE), pages of 4 KiB"
printf '%-40s %9s %9s  %s\n' "of one" "KiB" "charged" "counted: objects of all" | tee -a "$table"
for one in "${cases[@]}"; do
	(($#)) && [[ " $* " != *" ${one%%:*} "* ]] && continue
	read -ra words <<<"${one#*:}"
	measure "${one%%:*}" "${words[@]}"
done
rmmod rdmatensor || die "rmmod failed"
