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

for way in defaults by_insmod by_tool; do
	if $way; then
		result ok "parameters: $way"
	else
		rmmod rdmatensor 2>/dev/null
		result "not ok" "parameters: $way"
	fi
done
