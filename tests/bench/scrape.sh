#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scrape.sh [SCRAPES]: what a scrape of 256 channels costs that are in use, on one node: 128 of each of
# two workers. Processor time of the listener, its system calls and HTTP in it; beside it that of
# `show channels -j`, which a script would ask, in turn. Lines as guest.sh's, into LAB_OUT/raw-scrape; the
# time in which the module answers, beside what keeps the processor busy, is a comment.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
scrapes=${1:-20}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
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

# Processor time of what a script would run, in nanoseconds
asked() {
	/usr/bin/python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round((spent.ru_utime + spent.ru_stime) * 1e9))' "$tool" show channels -j || die "show channels has failed"
}

# sum FAMILY: over all series
sum() {
	awk -v at="$1{" 'index($0, at) == 1 { sum += $NF } END { printf "%d\n", sum }' /tmp/scrape
}

scrape
[ "$(sum rdmatensor_channel_up)" = 256 ] || die "there are $(sum rdmatensor_channel_up) channels"
fetched=$(sum rdmatensor_channel_fetched_total)
answered=0 cost=0 peer=0
for ((i = 0; i < scrapes; i++)); do
	before=$(spent) || exit
	scrape
	after=$(spent) || exit
	cost=$((cost + after - before))
	before=$(asked) || exit
	peer=$((peer + before))
	answered=$(awk -v sum="$answered" '/^rdmatensor_scrape_duration_seconds / { print sum + $2 }' /tmp/scrape)
done
# Of one, in milliseconds
each() { awk -v sum="$1" -v nr="$scrapes" -v in_ms="$2" 'BEGIN { printf "%.3f", sum / nr * in_ms }'; }
[ "$(sum rdmatensor_channel_fetched_total)" -gt "$fetched" ] || die "nobody fetches meanwhile"
echo "# fetched $(($(sum rdmatensor_channel_fetched_total) - fetched)) tensors meanwhile, $(wc -c </tmp/scrape) bytes each"
record scrape_256 ours "$(each "$cost" 1e-6)"
record scrape_256 peer "$(each "$peer" 1e-6)"
echo "# the module answers in $(each "$answered" 1e3) ms"
kill "$listener" "$channels" "$server"
wait
rmmod rdmatensor || die "rmmod failed"
