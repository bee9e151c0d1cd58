#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The measurements in one guest, on one rxe device: ours and the peer's in turn,
# ROUNDS times. One line a measurement, into LAB_OUT/raw: NAME ours|peer VALUE.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
rounds=${1:-5}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
raw=$LAB_OUT/raw
gid=1
# A clock of one's own for perftest's latencies
ticks_per_us=$("$LAB_BUILD/bench-cycles")
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters

# server perf|gather PORT ARGS: one that is ready when this returns
server() {
	local what=$1 port=$2
	shift 2
	spawn ready "/tmp/server.$port" "$tool" "$what" --server --listen "$LAB_IP:$port" \
		--json "$@" || die "no server on port $port"
	servers+=("$spawned")
}

# run perf|gather PORT FILTER ARGS: one run, and of its JSON, which stays in
# /tmp/perf.json or /tmp/gather.json, what FILTER takes
run() {
	local what=$1 port=$2 filter=$3
	shift 3
	timeout 60 "$tool" "$what" "$LAB_IP:$port" --json "$@" >"/tmp/$what.json" ||
		die "$what $* failed"
	jq -r "$filter" "/tmp/$what.json"
}

client() {
	run perf "$1" ".[0] | $2" "${@:3}"
}

gather() {
	run gather "$@"
}

# perftest COLUMN COMMAND: of the line of numbers after "#bytes". Its event mode now
# and then misses an event on soft-RoCE and waits for ever: then once more.
perftest() {
	local try
	for try in {1..16}; do
		perftest_once "$@" && return
		echo "bench: ${*:2}: try $try failed" >&2
	done
	return 1
}

perftest_once() {
	local column=$1 limit=20
	shift
	[[ $1 != ib_send_lat ]] || limit=3
	timeout $limit "$@" -d rxe0 -x $gid -F >/tmp/pt.server 2>&1 &
	local pid=$!
	# It says nothing when it listens: port 18515, state LISTEN
	for _ in $(seq 100); do
		grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null && break
		sleep 0.02
	done
	if ! timeout $limit "$@" -d rxe0 -x $gid -F "$LAB_IP" >/tmp/pt.client 2>&1; then
		kill $pid 2>/dev/null
		wait $pid
		cat /tmp/pt.client >&2
		return 1
	fi
	wait $pid
	# It may end well without a figure, or with one by a clock that it could not gauge;
	# ticks (-C) need none
	if { [[ " $* " == *" -C "* ]] || ! grep -q 'Correlation coefficient' /tmp/pt.client; } &&
	   awk -v c="$column" '/^ *#bytes/ { getline; if ($c ~ /^[0-9.]+$/ && $c > 0) { print $c; n++ } }
		END { exit !n }' /tmp/pt.client; then
		return
	fi
	cat /tmp/pt.client >&2
	return 1
}

# wire_writes SIDE PORT ARGS: writes of a steady fetch by the channel's counters. The
# device must say the same: every write of at most the MTU is one packet and one
# acknowledgement, and it counts what both sides send. Two runs of unlike length,
# so that what set-up and warm-up cost falls out of the device's figure.
wire_writes() {
	local side=$1 port=$2 before middle after value device
	local all='[.tx_messages, .tx_acks, .rx_messages, .rx_acks, .rx_contents] | add'
	shift 2
	before=$(cat $counters/sent_pkts)
	client "$port" .fetched -s 4096 -q 16 -n 1000 "$@" >/dev/null
	middle=$(cat $counters/sent_pkts)
	value=$(client "$port" "($all) / .fetched" -s 4096 -q 16 -n 21000 "$@")
	after=$(cat $counters/sent_pkts)
	device=$(awk -v a=$((middle - before)) -v b=$((after - middle)) \
		'BEGIN { print (b - a) / 2 / 20000 }')
	awk -v v="$value" -v d="$device" 'BEGIN { exit !(v / d > 0.98 && v / d < 1.02) }' ||
		die "counters say $value writes a fetch, the device says $device"
	record wire_writes_per_fetch "$side" "$value"
	record wire_writes_device "$side" "$device"
}

# READs beside READs: of rows that are wanted once and are no neighbours, each is a READ.
# And rows, as they come at random: some are wanted twice, and neighbours are joined.
gathers() {
	local lanes=2 size=$1 name=$2 port=$3 n=$4 reads
	reads=$(gather "$port" "$per_second" --gather-lanes $lanes -r "$n" -D 1 -k apart)
	record "gather_$name" ours "$reads"
	record "gather_$name" peer "$(reads_bw "$size" 10000 $lanes)"
	record "gather_rows_$name" ours \
		"$(gather "$port" .rows_per_second --gather-lanes $lanes -r "$n" -D 1)"
	record "gather_rows_$name" peer "$reads"
}

# READs a second: SIZE, how many, queue pairs, more options
reads_bw() {
	perftest 5 ib_read_bw -s "$1" -n "$2" -q "$3" "${@:4}" | awk '{ print $1 * 1e6 }'
}
per_second='.gather_reads / .rows * .rows_per_second'

# What a step costs the publisher and both, copied and kept beside without copies: in turn,
# in one program. SIZE NAME STEPS
steps() {
	"$LAB_BUILD"/load/load steps "$LAB_IP" "$1" "$3" >/tmp/steps.json || die "steps failed"
	for what in free step; do
		record "copy_${what}_$2" ours "$(jq -r ".copied.${what}_us" /tmp/steps.json)"
		record "copy_${what}_$2" peer "$(jq -r ".in_place.${what}_us" /tmp/steps.json)"
	done
}

servers=()
declare -A side_port=([ours]=7000 [peer]=7001)
rm -f "$raw"
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
server perf 7000
server perf 7001 --msg-slots 1
# So many rows that few are wanted twice in one gather
server gather 7002 --row-bytes 512 --rows 0:200000
server gather 7003 --row-bytes 2048 --rows 0:60000

for _ in $(seq "$rounds"); do
	for size in 1 8 64; do
		bytes=$((size << 20))
		n=$((512 / size > 20 ? 20 + 256 / size : 512 / size))
		record fetch_bw_${size}m ours \
			"$(client 7000 '.bytes_per_second / 1048576' -s $bytes -q 8 -n $n)"
		record fetch_bw_${size}m peer "$(perftest 4 ib_write_bw -s $bytes -n $n -q 1)"
	done

	record fetch_lat_4k ours "$(client 7000 .lat_us.p50 -m lat -s 4096 -n 3000)"
	# The same on the wire: a request of 80 bytes goes, 4 KB come. It prints half of a
	# round trip, the typical one. 50 iterations: it misses an event about once in 200
	# of them, and more often on a busy machine
	record fetch_lat_4k peer "$(awk -v a="$(perftest 5 ib_send_lat -C -e -s 80 -n 50)" \
		-v b="$(perftest 5 ib_send_lat -C -e -s 4096 -n 50)" -v us="$ticks_per_us" \
		'BEGIN { if (a > 0 && b > 0) print (a + b) / us }')"

	record fetch_rate_4k ours "$(client 7000 .fetches_per_second -s 4096 -q 64 -D 1)"
	record syscalls_per_fetch ours "$(jq -r '.[0] | .submits / .fetched' /tmp/perf.json)"
	record fetch_rate_4k peer \
		"$(client 7001 .fetches_per_second --msg-slots 1 -s 4096 -q 1 -D 1)"
	record syscalls_per_fetch peer "$(jq -r '.[0] | .submits / .fetched' /tmp/perf.json)"

	gathers 512 512 7002 40000
	record gather_vs_naive ours \
		"$(gather 7002 "$per_second" --gather-lanes 2 -r 40000 -D 1 -k apart)"
	# One signalled READ at a time: 1 / its latency, the typical one
	record gather_vs_naive peer \
		"$(perftest 5 ib_read_lat -C -s 512 -n 2000 |
			awk -v us="$ticks_per_us" '{ print 1e6 * us / $1 }')"
	record gather_signalled_per_row ours \
		"$(jq -r '.gather_signalled / .rows' /tmp/gather.json)"
	record gather_signalled_per_row peer 1
	gathers 2048 2k 7003 20000
	two_k=$(gather 7003 .rows_per_second --gather-lanes 2 -r 20000 -D 1)
	record gather_powerlaw ours \
		"$(gather 7003 .rows_per_second --gather-lanes 2 -r 20000 -D 1 -k power)"
	record gather_powerlaw peer "$two_k"
	record gather_sorted ours \
		"$(gather 7003 .rows_per_second --gather-lanes 2 -r 20000 -D 1 -k sorted)"
	record gather_sorted peer "$two_k"

	steps 4096 4k 300
	steps $((1 << 20)) 1m 60
	steps $((64 << 20)) 64m 5

	for side in ours peer; do
		args=()
		[ $side = peer ] && args=(--msg-slots 1)
		wire_writes $side "${side_port[$side]}" "${args[@]}"
	done
done

# The figures of the plot, too: over lanes and over reads a list. perftest waits for ever
# if its reads are no multiple of what one completion tells of.
for _ in 1 2 3; do
	for lanes in 1 2 4 8; do
		for cq_mod in 1 16 128; do
			record gather_lanes${lanes}_cqmod$cq_mod ours \
				"$(gather 7002 "$per_second" --gather-lanes $lanes \
					--cq-mod $cq_mod -r 40000 -n 6 -k apart)"
			record gather_lanes${lanes}_cqmod$cq_mod peer \
				"$(reads_bw 512 $((16384 / lanes)) $lanes -Q $cq_mod)"
		done
	done
done

kill "${servers[@]}"
wait
rmmod rdmatensor || die "rmmod failed"
