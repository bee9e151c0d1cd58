#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# netlink.sh: what is shown of contexts, channels and pools, and what is told of their
# lives, as root in a guest with one node: against what this script knows that it did.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor
model=$LAB_BUILD/demo/model.safetensors

# is FILTER WANTED WHAT [ARGUMENT]: what jq makes of `show WHAT -j`
is() {
	local got
	got=$("$tool" show "${@:3}" -j | jq -Mc "$1")
	[[ $got == "$2" ]] && return
	echo "show ${*:3} | jq '$1' is $got, expected $2"
	"$tool" show "${@:3}"
	return 1
}

served() {
	"$tool" serve "$model" --listen "$LAB_IP:7000" --worker server --steps 2 >/tmp/serve 2>&1 &
	server=$!
	until_true grep -q serving /tmp/serve
}

check "without the module" eval '! "$tool" show contexts 2>/tmp/err && grep -q "not loaded" /tmp/err'
load
check "no contexts" is . '[]' contexts
check "a table has its head" eval '[[ $("$tool" show contexts) == "CONTEXT PID "* ]]'

# ended_early LIST FILTER VALUE COMMAND...: a server is ended as soon as `show LIST` has that of
# it: by the signal, or as a server that was ready
ended_early() {
	local list=$1 filter=$2 value=$3 status
	shift 3
	"$tool" "$@" --listen "$LAB_IP:7009" --worker early >/dev/null &
	server=$!
	until_true is "map(select(.worker == \"early\")) | $filter" "$value" "$list" ||
		{ kill -KILL $server; return 1; }
	kill $server
	until_true eval '! kill -0 $server 2>/dev/null' || { kill -KILL $server; return 1; }
	wait $server
	status=$?
	((status == 143 || status == 0)) && until_true is . '[]' contexts
}
check "a server of perf ends while it fills its memory" \
	ended_early pools 'map(.bytes)' '[134217728]' perf --server --max-size 128M
check "so does one of gather" ended_early pools 'map(.bytes)' '[134217728]' \
	gather --server --rows 0:1048576 --row-bytes 128
check "and one of serve while it publishes" \
	ended_early contexts '.[0].counters.published > 1000' true serve "$model" --steps 100000

# Nobody reads what it prints: the second signal ends it at the latest
stuck() {
	local status
	rm -f /tmp/stuck
	mkfifo /tmp/stuck
	exec 7<>/tmp/stuck
	dd if=/dev/zero of=/tmp/stuck bs=4096 oflag=nonblock 2>/dev/null
	"$tool" serve "$model" --listen "$LAB_IP:7009" --worker stuck >/tmp/stuck 2>/tmp/err &
	server=$!
	# It has handlers, and waits for the pipe: its last step before it serves
	until_true eval 'grep -q "SigCgt:.*4002$" /proc/$server/status && grep -q "State:.S" /proc/$server/status'
	until_true eval '! kill $server 2>/dev/null' || kill -KILL $server
	wait $server
	status=$?
	exec 7>&-
	((status == 0 || status == 1 || status == 143))
}
check "a server whose output nobody reads ends with a signal" stuck

as_nobody() {
	timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
		"$tool" "$@" 2>&1
}
refused() {
	local got
	got=$(as_nobody "$@")
	[[ $? == 1 && $got == *"CAP_NET_ADMIN"* ]] && return
	echo "$got"
	return 1
}
check "events are not for everybody" refused monitor
check "nor are dumps" refused show contexts

# Its socket is a member of a group: of what comes from now on nothing is missed
is_member() {
	awk -v pid="$1" '$2 == 16 && $3 % 4194304 == pid && $4 !~ /^0+$/ { nr++ } END { exit !nr }' /proc/net/netlink
}
# Two for each context that was started, whether they were told or lost
all_accounted() {
	(($(jq -s "map(if .event == \"lost\" then .events else 1 end) | add" /tmp/slow) == 2 * $1))
}
# More than the socket of one that does not read holds: each that it got, or it is counted
loses() {
	local slow i ret=0 memory=/proc/sys/net/core/rmem_ rooms
	rooms=("$(<${memory}max)" "$(<${memory}default)")
	tee ${memory}{max,default} <<<4608 >/dev/null
	"$tool" monitor -j >/tmp/slow 2>&1 &
	slow=$!
	until_true is_member $slow || ret=1
	echo "${rooms[0]}" >${memory}max
	echo "${rooms[1]}" >${memory}default
	kill -STOP $slow
	for ((i = 0; i < 12; i++)); do
		"$tool" info --start >/dev/null || ret=1
	done
	kill -CONT $slow
	until_true grep -q '"event":"lost"' /tmp/slow || ret=1
	until_true all_accounted 12 || ret=1
	kill $slow
	wait $slow || ret=1
	((ret)) && cat /tmp/slow
	return $ret
}
check "events that are lost are counted" loses

"$tool" monitor >/tmp/told 2>&1 &
plain=$!
"$tool" monitor -j >/tmp/events 2>/tmp/monitor.err &
monitor=$!
# Its first words are those of what it has heard: wait until it listens
until_true grep -q . "/proc/$monitor/net/netlink"
until_true eval '"$tool" info --start >/dev/null; grep -q "context start" /tmp/told'
for ((i = 0; i < 100; i++)); do
	"$tool" info --start >/dev/null
	[[ -s /tmp/events ]] && break
	sleep 0.05
done
before=$(wc -l </tmp/events)

# Patient enough for a machine that has other things to do
export RDMA_QP_TIMEOUT=16 RDMA_QP_RETRY_COUNT=3 RDMA_QP_SL=5 RDMA_TRAFFIC_CLASS=32 \
	RDMA_QP_MTU=1024 RDMATENSOR_LANES=3 RDMA_QP_QUEUE_DEPTH=200 RDMATENSOR_RNR_RETRY=2 \
	RDMATENSOR_MSG_SLOTS=16
check "a server" served
check "its context" is '[.[0] | .worker, .device, .port, .mtu, .listen_port, .channels, .pools, .comm]' \
	"[\"server\",\"$LAB_RDMA_DEV\",1,1024,7000,0,1,\"rdmatensor\"]" contexts
check "its process" is '.[0].pid' "$server" contexts
tensors=$(("$("$tool" show contexts -j | jq '.[0].counters.published')"))

check "a client" "$tool" fetch "$LAB_IP:7000" --all --steps 2 --worker client -o /tmp/got.safetensors
# The index of the file is published for each step, and was asked for once
check "what it was served is counted" is '[.[0].counters | .served, .channels_up, .protocol_errors]' \
	"[$((tensors - 1)),1,0]" contexts
check "and its bytes" eval \
	'(($("$tool" show contexts -j | jq ".[0].counters.served_bytes") >= 2 * $(jq -n "[$(stat -c %s "$model") * 9 / 10 | floor][0]")))'

# The first file that it opens would get the number of the closed stream
closed() {
	local cat status
	rm -f /tmp/pipe
	mkfifo /tmp/pipe
	timeout 90 cat /tmp/pipe >/tmp/piped &
	cat=$!
	timeout 60 "$tool" fetch "$LAB_IP:7000" nobody.has.this --timeout 0.2 --worker closed -o /tmp/pipe 2>&-
	status=$?
	wait $cat
	((status == 1)) && [[ ! -s /tmp/piped ]]
}
check "what a client says does not go into its output" closed

# A channel that stays: a client that goes on
# Not on a stock 6.1
memory=anon named=process
[ ! -e /dev/dma_heap/system ] || memory=dmabuf named=dmabuf
"$tool" perf --server --memory memfd --listen "$LAB_IP:7001" --worker perf-server \
	>/dev/null 2>&1 &
perf_server=$!
until_true is 'length' 2 contexts
"$tool" perf "$LAB_IP:7001" --memory $memory -s 4096 -D 600 --worker perf-client \
	>/tmp/perf-client 2>&1 &
perf=$!
until_true is 'map(select(.state == "up")) | length' 2 channels
check "two ends of one channel" is 'map([.worker, .peer, .active == true]) | sort' \
	'[["perf-client","perf-server",true],["perf-server","perf-client",false]]' channels
# It fetches as fast as it can, and what is shown next is the same without
kill -STOP $perf
check "lanes" is '.[0].lanes | length' 3 channels
# The device's own words. Soft-RoCE's timeout gets two more, as it takes a quarter of it;
# and it does not remember a service level
check "queue pairs are as they were set" is \
	'[.[].lanes[] | [.timeout, .retry_count, .rnr_retry, .traffic_class, .mtu, .send_depth >= 201]] | unique' \
	'[[18,3,2,32,1024,true]]' channels
# Two channels, whose first lanes take all that the other ones do not
vectors=$(($(nproc) < 2 ? $(nproc) : 2))
check "channels begin at different completion vectors" is \
	'[.[].lanes[0].comp_vector] | unique | length' "$vectors" channels
check "lanes take all completion vectors" is \
	'[.[].lanes | map(.comp_vector) | unique | length] | min' \
	"$(($(nproc) < 3 ? $(nproc) : 3))" channels
check "message slots" is '[.[].msg_slots] | unique' '[16]' channels
check "pools" is 'map(.worker) | sort' '["perf-client","perf-server","server"]' pools
check "what peers may do with them" is 'map([.worker, .peers]) | sort' \
	'[["perf-client","write"],["perf-server","none"],["server","none"]]' pools
check "what they are made of" is 'map([.worker, .memory, .read_only, .unreachable]) | sort' \
	'[["perf-client","'$named'",null,null],["perf-server","process",null,null],["server","kernel",null,null]]' pools
id=$("$tool" show contexts -j | jq '.[] | select(.worker == "perf-client") | .context')
check "one context's channels" is 'map(.worker)' '["perf-client"]' channels "$id"
not_there() { ! "$tool" "$@" 2>/tmp/err && grep -q "there is no context 99999" /tmp/err; }
check "one that is not there" not_there show channels 99999 -j
check "nor for top" not_there top -n 1 99999
# What a program has of it that may not ask by netlink; root's are all that there are
own_are() {
	diff <("$LAB_BUILD/ulib/bin/own" | sort) \
		<("$tool" show contexts -j | jq -r '.[] | "\(.context) \(.pid) \(.worker)"' | sort) &&
		"$LAB_BUILD/ulib/bin/own" | grep -q "^$id [0-9]* perf-client$"
}
check "an example's list is the same" own_are
kill -CONT $perf
check "fetches go on" eval \
	'until_true is ".[0].counters.fetched > 0" true channels "$id"
	 a=$("$tool" show channels -j "$id" | jq ".[0].counters.fetched")
	 until_true is ".[0].counters.fetched > $a and $a > 0" true channels "$id"'
kill -STOP $perf
mode=$(stat -c %a /dev/rdmatensor)
chmod 600 /dev/rdmatensor
check "not for everybody" eval \
	'! su -s /bin/bash nobody -c "$tool show contexts" 2>/tmp/err && grep -q "only CAP_NET_ADMIN over this network namespace" /tmp/err'
chmod 666 /dev/rdmatensor
# Its own, which are none; whose they are is told beside the JSON
shown_to_nobody() {
	as_nobody show contexts -j >/tmp/shown && cat /tmp/shown
	[[ $(grep -v warning /tmp/shown) == "[]" ]] && grep -q "what this user opened" /tmp/shown
}
check "nobody sees what nobody does" shown_to_nobody
chmod "$mode" /dev/rdmatensor
check "not from another network namespace" eval '[[ $(unshare -n "$tool" show contexts -j) == "[]" ]]'
check "tables fit" eval '(($("$tool" show channels | wc -L) <= 80))'

# All of a model's, over several messages, and one by its context; as a peer lists them
offered() {
	local server id ret=0
	"$tool" serve "$model" --listen "$LAB_IP:7010" --worker model >/tmp/model 2>&1 &
	server=$!
	until_true grep -q serving /tmp/model
	"$tool" show tensors -j >/tmp/shown
	"$tool" ls "$LAB_IP:7010" -j --worker lister >/tmp/listed
	id=$("$tool" show contexts -j | jq '.[] | select(.worker == "model").context')
	jq -c '.[] | select(.worker == "model") | [.tensor, .step, .dtype, .shape, .bytes, .uses]' /tmp/shown >/tmp/a
	jq -c '.[] | [.name, .step, .dtype, .shape, .bytes, (.uses | select(. > 0))]' /tmp/listed >/tmp/b
	diff /tmp/a <(jq -c '.[0:5] + [null]' /tmp/b) && (($(wc -l </tmp/a) == $(wc -l </tmp/b))) &&
		(($(wc -l </tmp/a) > 256)) || ret=1
	[[ $("$tool" show tensors -j "$id" | jq length) == "$(wc -l </tmp/a)" ]] || ret=1
	"$tool" show tensors "$id" | head -n 3
	"$tool" show tensors "$id" | grep -qE "^ *$id +float +\\[[0-9,]+\\] +[0-9]+ +0 +- " || ret=1
	kill $server
	wait $server
	return $ret
}
check "tensors" offered

# So many fetches, no more and no less; and what waits is shown
counts() {
	"$tool" perf "$LAB_IP:7001" -s 8192 -n 200 --worker counted -j >/tmp/counted || return 1
	[[ $(jq -c '.[0] | [.fetched, .tx_requests, .rx_contents, .fetch_errors]' /tmp/counted) == \
		'[200,200,200,0]' ]]
}
check "so many fetches" counts
check "each fetch is once in the histogram" eval \
	'"$tool" show channels -j "$id" | jq -e ".[0] | .counters.fetched - ([.latency_us[]] | add) | fabs < 2"'

. tests/system/metrics.sh

waited_no_longer() {
	local age
	age=$("$tool" show requests -j |
		jq '.[] | select(.worker == "waiter").age_ns / 1e9 | floor')
	echo "$age s old, begun $((SECONDS - began)) s ago"
	((age <= SECONDS - began + 1))
}

# It waits for as long as it takes to look at it
began=$SECONDS
"$tool" fetch "$LAB_IP:7001" nobody.has.this --timeout 600 --worker waiter -o /tmp/x.safetensors 2>/tmp/waits &
waits=$!
until_true is 'map(select(.worker == "waiter")) | length' 1 requests
check "a request that waits" is \
	'.[] | select(.worker == "waiter") | [.tensor, .peer, .state, .step, .age_ns > 0]' \
	'["nobody.has.this","perf-server","SENT",0,true]' requests
check "how long it waits" waited_no_longer
check "as a table" eval '"$tool" show requests | grep -q "SENT .* nobody.has.this$"'
check "its channel has it" is '.[] | select(.worker == "waiter") | .requests' 1 channels
kill $waits
wait $waits
check "one that is timed out" eval \
	'! "$tool" fetch "$LAB_IP:7001" nobody.has.this --timeout 0.2 --worker late -o /tmp/x.safetensors 2>/dev/null'
until_true grep -q '"request timeout"' /tmp/events

# Nobody listens there
waits_for_its_peer() {
	"$tool" fetch "$LAB_IP:7009" w --wait 2 --worker eager -o /tmp/x.safetensors 2>/tmp/err && return 1
	until_true grep -q '"connect waits"' /tmp/events
	jq -se --arg at "$LAB_IP:7009" 'map(select(.event == "connect waits")) | length == 1 and (.[0] |
		.worker == "eager" and .address == $at and .wait_ms > 0 and .wait_ms <= 2000 and
		.error == -111 and .text == "nobody listens there yet")' /tmp/events || return 1
	until_true grep -q "connect waits" /tmp/told
	grep -E "^20[^ ]+ connect waits +context [0-9]+ worker eager address $LAB_IP:7009 for [0-9]+ ms: nobody listens there yet \\(-111\\)$" /tmp/told ||
		! cat /tmp/told
}
check "a CONNECT that waits, once, and how long" waits_for_its_peer

"$tool" gather --server --rows 0:1000 --listen "$LAB_IP:7005" --worker rows >/tmp/rows 2>&1 &
rows=$!
until_true grep -q exporting /tmp/rows
# A gather takes longer than it is to ask for it
"$tool" gather "$LAB_IP:7005" --gather-lanes 3 -D 600 -r 50000 -q 1 --worker reads >/tmp/reads 2>&1 &
reads=$!
until_true is 'map(select(.lanes_up == 3)) | length' 1 tables
check "tables" is 'map([.worker, .tensor, .row_start, .row_end, .row_bytes, .owners, .export]) | sort' \
	'[["reads","rdmatensor.gather",0,1000,512,1,null],["rows","rdmatensor.gather",0,1000,512,null,true]]' \
	tables
# What soft-RoCE answers and begins: 128
check "as many READs at the same time as the device does" is \
	'[.[] | select(.read_lanes) | [.worker, (.read_lanes[] | [.reads_in, .reads_out])] | unique] | sort' \
	'[["reads",[0,128]],["rows",[128,0]]]' channels
# There is none between two of them
check "gathers are requests" until_true eval \
	'"$tool" show requests | grep -q "GATHERING .* rdmatensor.gather$"'
check "tables of tables fit" eval '(($("$tool" show tables | wc -L) <= 80))'
kill -9 $reads
kill $rows
wait $rows
until_true is 'map(select(.worker == "rows" or .worker == "reads")) | length' 0 contexts

rates() {
	"$tool" top -j -d 2 -n 2 "$id" | tail -n 1 >/tmp/rates
	cat /tmp/rates
	jq -e '.channels | length == 1 and (.[0] | .worker == "perf-client" and .has_rates)' /tmp/rates &&
		jq -e '.fetches_per_second > 1 and .served_per_second == 0 and .errors_per_second == 0 and
		       .median_below_us > 0 and .p99_below_us >= .median_below_us and
		       ((.in_bytes_per_second / .fetches_per_second - 4096) | fabs) < 1' /tmp/rates
}
kill -CONT $perf
check "top's rates are those of its channel" rates
check "top fits" eval '(($("$tool" top -d 0.2 -n 2 | tee /tmp/top | wc -L) <= 80)) && grep -q perf-client /tmp/top'
check "a context's fetches by hand" eval \
	'a=$("$tool" show channels -j "$id" | jq ".[0].counters.fetched")
	 r=$("$tool" top -j -d 1 -n 1 "$id" | jq .fetches_per_second)
	 b=$("$tool" show channels -j "$id" | jq ".[0].counters.fetched")
	 awk -v n=$((b - a)) -v r="$r" "BEGIN { exit !(r > 0 && r <= n) }"'

kill -STOP $perf

# max_contexts holds for all processes together
most() {
	local started
	started=$("$tool" show contexts -j | jq length)
	"$tool" set max_contexts "$started" || return 1
	"$tool" info --start 2>/tmp/err && return 1
	grep -q "all max_contexts $started of this host" /tmp/err || { cat /tmp/err; return 1; }
	"$tool" set max_contexts $((started + 1)) && "$tool" info --start --worker extra >/dev/null || return 1
	"$tool" set max_contexts 1024
}
check "no more contexts than max_contexts" most

# It would go on for minutes
check "the client has had no error" eval '[[ -e /proc/$perf/exe ]] || ! cat /tmp/perf-client'
kill -9 $perf
until_true is 'map(.worker) | sort' '["perf-server","server"]' contexts
kill $server
wait $server
# It ends when it hears of that
kill -STOP $perf_server
rdma link del "$LAB_RDMA_DEV"
until_true grep -q 'device gone' /tmp/events
check "a context whose device has gone" is '.[0] | [.worker, .device]' '["perf-server",null]' contexts
kill -CONT $perf_server
wait $perf_server
check "the server of that ends by itself" [ $? = 1 ]
until_true is . '[]' contexts
kill $monitor $plain
check "the monitor ends well" wait $monitor
check "and so does the one for people" wait $plain

told() {
	local got
	got=$(tail -n +$((before + 1)) /tmp/events |
		jq -Mr '[.event, .worker, .peer // empty] | join(" ")' | sort)
	echo "$got" >/tmp/got-events
	diff /tmp/got-events -
}
until_true grep -q '"context end".*perf-server' /tmp/events
check "all that happened was told, and nothing else" told <<-'EVENTS'
	channel down client server
	channel down closed server
	channel down counted perf-server
	channel down late perf-server
	channel down lister model
	channel down metered server
	channel down model lister
	channel down perf-client perf-server
	channel down perf-server counted
	channel down perf-server late
	channel down perf-server perf-client
	channel down perf-server waiter
	channel down reads rows
	channel down rows reads
	channel down server client
	channel down server closed
	channel down server metered
	channel down waiter perf-server
	channel up client server
	channel up closed server
	channel up counted perf-server
	channel up late perf-server
	channel up lister model
	channel up metered server
	channel up model lister
	channel up perf-client perf-server
	channel up perf-server counted
	channel up perf-server late
	channel up perf-server perf-client
	channel up perf-server waiter
	channel up reads rows
	channel up rows reads
	channel up server client
	channel up server closed
	channel up server metered
	channel up waiter perf-server
	connect waits eager
	context end client
	context end closed
	context end counted
	context end eager
	context end extra
	context end late
	context end lister
	context end metered
	context end model
	context end perf-client
	context end perf-server
	context end reads
	context end rows
	context end server
	context end waiter
	context start client
	context start closed
	context start counted
	context start eager
	context start extra
	context start late
	context start lister
	context start metered
	context start model
	context start perf-client
	context start perf-server
	context start reads
	context start rows
	context start server
	context start waiter
	device gone perf-server
	request timeout closed server
	request timeout late perf-server
EVENTS
check "with the time and why" jq -se \
	'map(select(.event == "channel down")) | length > 0 and
	 all((.time | test("^20..-..-..T")) and .error < 0 and .text != "")' /tmp/events

# The traffic class of a channel whose opener was given these options
class_is() {
	local id
	nice -n 19 "$tool" perf "$LAB_IP:7002" -s 4096 -D 600 --worker class "${@:2}" >/dev/null 2>&1 &
	id=$!
	until_true is '[.[] | select(.worker == "class" and .state == "up") | .lanes[].traffic_class]' \
		"[$1]" channels
	set -- $?
	kill $id
	wait $id
	until_true is 'map(select(.worker == "class"))' '[]' channels
	return "$1"
}

# 0 is a class like others, over what the module or the host has; auto is the host's
classes() {
	local host=/sys/kernel/config/rdma_cm/$LAB_RDMA_DEV/ports/1/default_roce_tos server
	unset RDMA_TRAFFIC_CLASS RDMATENSOR_LANES
	# It has gone, for the test before
	rdma link add "$LAB_RDMA_DEV" type rxe netdev "$LAB_NETDEV" || return 1
	until_true "$tool" info --start || return 1
	mkdir -p "/sys/kernel/config/rdma_cm/$LAB_RDMA_DEV" && echo 40 >"$host" || return 1
	"$tool" perf --server --listen "$LAB_IP:7002" --worker classes >/dev/null 2>&1 &
	server=$!
	until_true is 'map(select(.worker == "classes")) | length' 1 contexts &&
		class_is 40 && class_is 0 --param traffic_class=0 &&
		RDMA_TRAFFIC_CLASS=0 class_is 0 &&
		"$tool" set traffic_class 96 && class_is 96 && class_is 0 --param traffic_class=0 &&
		class_is 40 --param traffic_class=auto
	set -- $?
	"$tool" set traffic_class auto
	kill $server
	wait $server
	rmdir "/sys/kernel/config/rdma_cm/$LAB_RDMA_DEV"
	return "$1"
}

check "traffic class 0, and the host's own" classes
unload
exit "$failed"
