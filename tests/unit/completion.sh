#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# completion.sh TOOL COMPLETION: what bash completes of a command line of the tool. TAP.
set -u
tool=${1:?usage: completion.sh TOOL COMPLETION}
# shellcheck source=/dev/null
. "${2:?usage: completion.sh TOOL COMPLETION}"
number=0
failed=0

# completes "WORDS... " WANTED...: the last of WORDS, which may be empty, to these
completes() {
	local line=$1 got
	shift
	read -ra COMP_WORDS <<<"$line"
	[[ $line != *" " ]] || COMP_WORDS+=("")
	COMP_WORDS[0]=$tool
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_rdmatensor
	got=" ${COMPREPLY[*]} "
	number=$((number + 1))
	for word; do
		[[ $got == *" $word "* ]] && continue
		echo "# \"$line\" gives:$got"
		echo "not ok $number - \"$line\" is completed to $word"
		failed=1
		return
	done
	if (($# == 0)) && [[ -n ${got// /} ]]; then
		echo "not ok $number - \"$line\" gives:$got"
		failed=1
		return
	fi
	echo "ok $number - \"$line\""
}

completes "rdmatensor " serve fetch perf gather info doctor show top metrics set monitor help --help --version
completes "rdmatensor help fe" fetch
completes "rdmatensor sh" show
completes "rdmatensor nosuch"
completes "rdmatensor perf --" --server --lanes --json --device
completes "rdmatensor fetch --al" --all
completes "rdmatensor show " contexts channels domains pools requests tensors tables params
completes "rdmatensor doctor --lis" --listen
completes "rdmatensor top --" --delay --count --json
completes "rdmatensor metrics --" --file --listen --format --max-series
completes "rdmatensor show params m" mtu msg_slots msg_slot_bytes max_channels max_pools
completes "rdmatensor show params de" device
completes "rdmatensor show params -" --json --verbose --help
completes "rdmatensor set la" lanes
completes "rdmatensor set d" device
completes "rdmatensor set lanes " 1 8
completes "rdmatensor set mtu " 256 4096 auto
exit $failed
