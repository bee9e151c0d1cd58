#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scrape.sh [SCRAPES [MS]]: what a scrape of 256 channels costs that are in use, on one node: 128 of each
# of two workers. Processor time of the listener, its system calls and HTTP in it, and the time in
# which the module answers, beside what keeps the processor busy. Fails above MS of processor time.
# On User-Mode Linux a page fault costs some hundred times as much as on a machine, and most of what
# is spent there is spent on these.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
scrapes=${1:-50}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
most=${2:-}
raw=$LAB_OUT/raw-scrape

rm -f "$raw"
${CC:-cc} -std=gnu11 -Wall -Wextra -O2 -Iulib/include -o /tmp/channels tests/bench/channels.c \
	"$LAB_BUILD/ulib/lib/librdmatensor.a" -pthread || die "channels is not built"
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
spawn ready /tmp/server "$tool" perf --server --json --max-size 4K --listen "$LAB_IP:7030" || die "no server"
server=$spawned
spawn ready /tmp/channels.log /tmp/channels "$LAB_IP:7030" 128 || die "no channels"
channels=$spawned
spawn "metrics at" /tmp/listener "$tool" metrics --listen "$LAB_IP:0" || die "no listener"
listener=$spawned
port=$(sed -n 's|.*http://[^:]*:\([0-9]*\),.*|\1|p' /tmp/listener)

# Processor time of the listener, in nanoseconds: the clock of its process (clock_getcpuclockid(3))
spent() {
	/usr/bin/python3 -c 'import sys, time; print(time.clock_gettime_ns(~int(sys.argv[1]) << 3 | 2))' \
		"$listener" || die "the listener has no clock"
}

scrape() {
	exec 8<>"/dev/tcp/$LAB_IP/$port" || die "the listener does not answer"
	printf 'GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n' >&8
	cat <&8 >/tmp/scrape
	exec 8>&-
}

# sum FAMILY: over all series
sum() {
	awk -v at="$1{" 'index($0, at) == 1 { sum += $NF } END { printf "%d\n", sum }' /tmp/scrape
}

scrape
[ "$(sum rdmatensor_channel_up)" = 256 ] || die "there are $(sum rdmatensor_channel_up) channels"
before=$(spent) || exit
fetched=$(sum rdmatensor_channel_fetched_total)
answered=0
for ((i = 0; i < scrapes; i++)); do
	scrape
	answered=$(awk -v sum="$answered" '/^rdmatensor_scrape_duration_seconds / { print sum + $2 }' /tmp/scrape)
done
after=$(spent) || exit
cost=$(awk -v ns="$((after - before))" -v nr="$scrapes" 'BEGIN { printf "%.3f", ns / nr / 1e6 }')
[ "$(sum rdmatensor_channel_fetched_total)" -gt "$fetched" ] || die "nobody fetches meanwhile"
echo "fetched $(($(sum rdmatensor_channel_fetched_total) - fetched)) tensors meanwhile, $(wc -c </tmp/scrape) bytes each"
record scrape_256_cpu_ms ours "$cost"
record scrape_256_module_ms ours "$(awk -v s="$answered" -v nr="$scrapes" 'BEGIN { printf "%.3f", s / nr * 1000 }')"
kill "$listener" "$channels" "$server"
wait
rmmod rdmatensor || die "rmmod failed"
awk -v cost="$cost" -v most="${most:-1e9}" 'BEGIN { exit !(cost > 0 && cost <= most) }' || die "a scrape costs $cost ms of processor time"
