# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# Each parameter by insmod: at its default, its ends, beyond them, and as what is no
# number. Sourced by run.sh, with the module unloaded.

# loads NAME=VALUE EXPECTED: it is taken, and holds
loads() {
	local name=${1%%=*}
	insmod "$module" "$1" || return 1
	[[ $(<"/sys/module/rdmatensor/parameters/$name") == "$2" ]] || {
		echo "# $1 holds as $(<"/sys/module/rdmatensor/parameters/$name")"
		rmmod rdmatensor
		return 1
	}
	rmmod rdmatensor
}

# refuses NAME=VALUE: and the log has the name, the value and the range
refuses() {
	dmesg -C 2>/dev/null || dmesg -c >/dev/null
	if insmod "$module" "$1" 2>/dev/null; then
		echo "# $1 was taken"
		rmmod rdmatensor
		return 1
	fi
	dmesg | grep -q "parameter ${1%%=*}: '${1#*=}' is refused: give a number from" && return
	echo "# $1: $(dmesg | tail -n 1)"
	return 1
}

by_insmod() {
	local name least most auto pow2 value nr=0
	while read -r name _ least most auto pow2; do
		loads "$name=$least" "$least" || return 1
		loads "$name=$most" "$most" || return 1
		for value in abc 12x -1 4294967296 $((most + 1)); do
			refuses "$name=$value" || return 1
		done
		((least == 0)) || refuses "$name=$((least - 1))" || return 1
		[[ $pow2 != true ]] || refuses "$name=$((most - 1))" || return 1
		if [[ $auto == true ]]; then
			loads "$name=auto" auto || return 1
		else
			refuses "$name=auto" || return 1
		fi
		nr=$((nr + 1))
	done <<<"$("$LAB_BUILD/ulib/bin/rdmatensor" show params -j |
		jq -r '.[] | [.name, .default, .least, .most, .auto, .power_of_two] | @tsv')"
	((nr >= 20))
}

defaults() {
	local bad
	insmod "$module" || return 1
	bad=$("$LAB_BUILD/ulib/bin/rdmatensor" show params -j |
	      jq -r '.[] | select(.value != .default) | .name')
	rmmod rdmatensor
	[[ -z $bad ]] && return
	echo "# not at their defaults: $bad"
	return 1
}

# The tool sets what the module then has, and refuses what that would refuse
by_tool() {
	local tool=$LAB_BUILD/ulib/bin/rdmatensor text
	insmod "$module" || return 1
	"$tool" set lanes 3 && [[ $("$tool" show params -j lanes | jq .[0].value) == 3 ]] &&
		"$tool" set mtu auto && "$tool" set device "$LAB_RDMA_DEV" || return 1
	[[ $("$tool" show params -j device | jq -r .[0].value) == "$LAB_RDMA_DEV" ]] || return 1
	"$tool" show params device | grep -qE "^device +$LAB_RDMA_DEV " || return 1
	for text in 0 9 x 3x ''; do
		! "$tool" set lanes "$text" 2>/dev/null || return 1
	done
	text=$("$tool" set lanes 9 2>&1)
	[[ $text == *"1..8"* && $("$tool" show params -j lanes | jq .[0].value) == 3 ]] || return 1
	[[ $("$tool" info --start -j | jq '.parameters.lanes, .device' | xargs) == "3 $LAB_RDMA_DEV" ]] ||
		return 1
	! su -s /bin/bash nobody -c "'$tool' set lanes 2" 2>/tmp/err || return 1
	grep -q 'only root' /tmp/err || return 1
	rmmod rdmatensor
	! "$tool" set lanes 2 2>/tmp/err || return 1
	grep -q 'load the module first' /tmp/err
}

# Two that belong together: set warns of what no context can start with, and of nothing else
together() {
	local tool=$LAB_BUILD/ulib/bin/rdmatensor pair said warned starts
	insmod "$module" || return 1
	for pair in "queue_depth 16" "msg_slots 4" "ack_batch 5" "ack_batch 4" "msg_slots 2" \
		"ack_batch auto" "msg_slots 8" "queue_depth 24" "queue_depth 23" "lanes 2" \
		"msg_slots 1"; do
		# shellcheck disable=SC2086
		said=$("$tool" set $pair 2>&1) || return 1
		warned=yes starts=yes
		[[ $said == *warning:*"no context starts with"* ]] || warned=no
		"$tool" info --start >/tmp/out 2>&1 || starts=no
		# Only who changes one of the two is told
		[[ $pair != lanes* || $starts != no || $warned != no ]] || continue
		[[ $warned != "$starts" ]] && continue
		echo "# set $pair: warned: $warned, starts: $starts: $said $(head -1 /tmp/out)"
		return 1
	done
	rmmod rdmatensor
}

# All of them as options of one START, over defaults that are the other end
by_option() {
	local tool=$LAB_BUILD/ulib/bin/rdmatensor way text rows default_gid
	insmod "$module" || return 1
	default_gid=$("$tool" info --start -j | jq .gid_index)
	rows=$("$tool" show params -j | jq -r '.[] | select(.variable) | [.name, .least, .most, .auto] | @tsv')
	for way in least most auto; do
		options_hold $way || return 1
	done
	for text in sl=8 sl=-1 sl= sl lanes=auto lanes=0 mtu=1500 max_contexts=1 nosuch=1 =1; do
		! "$tool" info --start --param "$text" 2>/tmp/err || return 1
		grep -q -- "--param .*refused: give" /tmp/err || return 1
	done
	[[ $(RDMA_SL=5 "$tool" info --start -j --param sl=0 | jq .parameters.sl) == 0 ]] || return 1
	"$tool" info --start -j --validate --param validate=0 | jq -e '.parameters.validate == 0' >/dev/null || return 1
	rmmod rdmatensor
}

# options_hold least|most|auto: of the rows
options_hold() {
	local name least most auto value other got options=() want=()
	while read -r name least most auto; do
		value=${!1} other=$most
		[[ $1 != most ]] || other=$least
		if [[ $1 == auto ]]; then
			[[ $auto == true ]] || continue
			value=auto other=$least
		elif [[ $1 == most ]]; then
			# The device has one port, few GIDs and one P_Key, and takes no such buffer
			if [[ $name == @(port|gid_index|pkey_index|msg_slot_bytes) ]]; then
				[[ $auto != true ]] || other=auto
				echo "$other" >"/sys/module/rdmatensor/parameters/$name"
				continue
			fi
		fi
		echo "$other" >"/sys/module/rdmatensor/parameters/$name" || return 1
		options+=(--param "$name=$value")
		case $value,$name in
		auto,port) value=1 ;;
		auto,gid_index) value=$default_gid ;;
		auto,mtu) value=4096 ;;
		auto,ack_batch) value=512 ;;
		auto,lane_bytes) value=131072 ;;
		esac
		want+=("$name=$value")
	done <<<"$rows"
	((${#options[@]})) || return 1
	[[ $1 != auto ]] || options+=(--param msg_slots=1024 --param queue_depth=4096 --param msg_slot_bytes=1024)
	got=$("$tool" info --start -j "${options[@]}") || return 1
	for value in "${want[@]}"; do
		other=$(jq -r ".parameters.${value%%=*}" <<<"$got")
		[[ $other == "${value#*=}" ]] && continue
		echo "# --param at its $1: $value, and holds $other"
		return 1
	done
}

for way in defaults by_insmod by_tool together by_option; do
	if $way; then
		result ok "parameters: $way"
	else
		rmmod rdmatensor 2>/dev/null
		result "not ok" "parameters: $way"
	fi
done
