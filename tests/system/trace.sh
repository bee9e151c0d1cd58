# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The tracepoints show a fetch from its submission to its completion, on both ends,
# in the order in which it happens. Sourced by run.sh, with the module loaded.

# in_order: the lines of the trace that stdin describes are there, in its order
in_order() {
	local line got
	exec 8</tmp/trace
	while read -r line; do
		while read -ru 8 got; do
			[[ $got =~ $line ]] && continue 2
		done
		echo "# after what came before it, there is no: $line"
		exec 8<&-
		return 1
	done
	exec 8<&-
}

# A fetch of a name that is new: each line, and those of an end in this order. An end traces a
# message when it has posted it, and by then another processor may have traced its arrival
fetch_in_order() {
	local tracing=/sys/kernel/tracing
	[[ -d $tracing/events/rdmatensor ]] || { echo "# no events in $tracing"; return 1; }
	echo >$tracing/trace
	echo 1 >$tracing/events/rdmatensor/enable
	"$LAB_BUILD"/system/system first_fetch_learns* >/tmp/trace.tap
	echo 0 >$tracing/events/rdmatensor/enable
	sed -E 's/.*: ([a-z_]+: .*)/\1/' $tracing/trace >/tmp/trace
	in_order <<-'FETCHER' && in_order <<-'PUBLISHER' && in_order <<-'BOTH'
		^rdmatensor_fetch_submit: user_data=[0-9]+ channel=1 step=0 deadline=[1-9]
		^rdmatensor_message_tx: channel=1 seq=2 type=TENSOR_REQUEST index=0
		^rdmatensor_request_state: .* index=0 QUEUED -> SENT$
		^rdmatensor_message_rx: channel=1 seq=2 type=META_DATA_RESPONSE index=0
		^rdmatensor_message_tx: channel=1 seq=3 type=TENSOR_RE_REQUEST index=0
		^rdmatensor_request_state: .* index=0 RE_QUEUED -> RE_SENT$
		^rdmatensor_fetch_end: user_data=[0-9]+ channel=1 result=0 bytes=5000$
	FETCHER
		^rdmatensor_message_rx: channel=1 seq=2 type=TENSOR_REQUEST index=0
		^rdmatensor_response_state: channel=1 index=0 FREE -> WAITING$
		^rdmatensor_message_tx: channel=1 seq=2 type=META_DATA_RESPONSE index=0
		^rdmatensor_response_state: channel=1 index=0 META_SENT -> WRITING$
		^rdmatensor_content_tx: channel=1 lane=0 index=0 bytes=5000 last$
	PUBLISHER
		^rdmatensor_memory_register: device=.* error=0$
		^rdmatensor_channel_state: channel=[0-9]+ CONNECTING -> UP error=0$
		^rdmatensor_fetch_submit: user_data=[0-9]+ channel=1 step=0 deadline=[1-9]
		^rdmatensor_content_rx: channel=1 lane=0 index=0 bytes=5000 last$
		^rdmatensor_fetch_end: user_data=[0-9]+ channel=1 result=0 bytes=5000$
		^rdmatensor_channel_state: channel=1 CLOSING -> DOWN
	BOTH
}

# Each type of message has its name, those of tables too
messages_by_name() {
	local tracing=/sys/kernel/tracing
	echo >$tracing/trace
	echo 1 >$tracing/events/rdmatensor/rdmatensor_message_tx/enable
	"$LAB_BUILD"/system/system ids_of_all_kinds* >/tmp/trace.tap
	echo 0 >$tracing/events/rdmatensor/rdmatensor_message_tx/enable
	grep -oE 'rdmatensor_message_tx: .* type=[^ ]*' $tracing/trace | sed 's/.*type=//' |
		sort | uniq -c
	grep -q 'type=TABLE_OPEN' $tracing/trace && grep -q 'type=TABLE_INFO' $tracing/trace &&
		! grep -q 'rdmatensor_message_tx: .* type=0x' $tracing/trace
}
check "messages are traced by name" messages_by_name

if fetch_in_order; then
	result ok "the tracepoints show a fetch in order"
else
	result "not ok" "the tracepoints show a fetch in order"
fi
