# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced: what the scripts around libFuzzer share. Options are in $runs, $seconds and $seed,
# the rest in $others.

# What an input may take, and the process: a fault of its own, and not the machine's end
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=32
limits=(-rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10)

take_options() {
	runs=-1 seconds=0 seed=$((RANDOM * 32768 + RANDOM + 1)) others=()
	while (($#)); do
		case $1 in
		--runs) runs=$2 ;;
		--seconds) seconds=$2 ;;
		--seed) seed=$2 ;;
		*)
			others+=("$1")
			shift
			continue
			;;
		esac
		shift 2
	done
}

# libfuzzer PROGRAM CORPUS LOG: what it says goes to LOG, its end to standard output
libfuzzer() {
	local rc=0
	"$1" -seed="$seed" -runs="$runs" -max_total_time="$seconds" -max_len=4096 \
		-len_control=0 -print_final_stats=1 "${limits[@]}" -artifact_prefix="$1-" "$2" \
		>"$3" 2>&1 || rc=$?
	# Without its line for each input that it keeps
	grep -vE '^#[0-9]+[[:space:]]' "$3" | tail -n 60 | sed 's/^# *//; s/^/# /'
	return $rc
}
