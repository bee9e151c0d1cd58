# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# Each parameter at its default, its ends, beyond them, and as what is no number: by insmod, by a write to
# sysfs, by the tool, and as an option of START. Sourced by run.sh, with the module unloaded.

parameters=/sys/module/rdmatensor/parameters

# NAME DEFAULT LEAST MOST AUTO POWER_OF_TWO, a line each
parameter_rows() {
	"$LAB_BUILD/ulib/bin/rdmatensor" show params -j |
		jq -r '.[] | [.name, .default, .least, .most, .auto, .power_of_two] | @tsv'
}

# load_all NAME=VALUE...: all are taken, and hold
load_all() {
	local pair value rc=0
	insmod "$module" "$@" || return 1
	for pair; do
		read -r value <"$parameters/${pair%%=*}"
		[[ $value == "${pair#*=}" ]] && continue
		echo "# $pair holds as $value"
		rc=1
	done
	rmmod rdmatensor
	return $rc
}

clear_log() { dmesg -C 2>/dev/null || dmesg -c >/dev/null; }

# refusals_of NAME VALUE...: since clear_log the log has the name, each value and the range
refusals_of() {
	local name=$1 value log
	log=$(dmesg)
	for value in "${@:2}"; do
		[[ $log == *"parameter $name: '$value' is refused: give a number from"* ]] && continue
		echo "# $name=$value: $(tail -n 1 <<<"$log")"
		return 1
	done
}

# insmod and a write to sysfs call the same function of the module. Loading it takes half a second
# under KASAN, so that insmod refuses one value of each parameter, and a write the others
by_insmod() {
	local name default least most auto pow2 value rows nr=0
	local -a values at_least=() at_most=() at_auto=()
	rows=$(parameter_rows)
	while read -r name _ least most auto _; do
		at_least+=("$name=$least")
		at_most+=("$name=$most")
		[[ $auto != true ]] || at_auto+=("$name=auto")
		clear_log
		if insmod "$module" "$name=$((most + 1))" 2>/dev/null; then
			echo "# insmod: $name=$((most + 1)) was taken"
			rmmod rdmatensor
			return 1
		fi
		refusals_of "$name" $((most + 1)) || return 1
		nr=$((nr + 1))
	done <<<"$rows"
	((nr >= 20)) && load_all "${at_least[@]}" && load_all "${at_most[@]}" && load_all "${at_auto[@]}" &&
		insmod "$module" || return 1
	while read -r name default least most auto pow2; do
		values=(abc 12x -1 4294967295 4294967296 $((most + 1)) $((least - 1)))
		[[ $pow2 != true ]] || values+=($((most - 1)))
		[[ $auto == true ]] || values+=(auto)
		clear_log
		for value in "${values[@]}"; do
			echo "$value" 2>/dev/null >"$parameters/$name" || continue
			echo "# $name: $value was taken"
			return 1
		done
		refusals_of "$name" "${values[@]}" || return 1
		read -r value <"$parameters/$name"
		[[ $value == "$default" ]] && continue
		echo "# $name was $default, and is $value"
		return 1
	done <<<"$rows"
	rmmod rdmatensor
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
	local name least most auto value other got held options=() want=()
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
	held=$(jq -r '[.parameters | to_entries[] | "\(.key)=\(.value)"] | join(" ")' <<<"$got")
	for value in "${want[@]}"; do
		[[ " $held " == *" $value "* ]] && continue
		echo "# --param at its $1: $value, and it holds $held"
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
