#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# tool.sh [--short] [--runs N] [--seconds N] [--seed N] [TARGET...]: what the tool takes from
# outside under libFuzzer, for N inputs or N seconds each, from a corpus that is made for each run:
# options (and variables), index (a peer's), shards (those of a peer's model), netlink (the
# kernel's messages), graph (of the example neighbours). TAP, and last "inputs N" of each.
# --short: few inputs. One that failed is kept in build/fuzz.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$top/build/fuzz
. "$top/tests/fuzz/libfuzzer.sh"

targets=(options index shards netlink graph)
# A few seconds, and enough to reach all kinds
declare -A short=([options]=100000 [index]=60000 [shards]=60000 [netlink]=12000 [graph]=60000)

take_options "$@"
few=''
if [[ ${others[0]:-} == --short ]]; then
	few=1
	others=("${others[@]:1}")
fi
((${#others[@]})) && targets=("${others[@]}")
for target in "${targets[@]}"; do
	if [[ -z ${short[$target]:-} ]]; then
		echo "usage: tool.sh [--short] [--runs N] [--seconds N] [--seed N] [${!short[*]}]" >&2
		exit 2
	fi
done
[[ -n $few ]] || ((runs >= 0 || seconds > 0)) || seconds=15

make --no-print-directory -C "$top/tests/fuzz" O="$dir" "${targets[@]/#/$dir/}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0 failed=0 tried=()

say() {
	number=$((number + 1))
	[[ $1 == ok ]] || failed=1
	echo "$1 $number - $2"
}

fuzz() {
	local target=$1 corpus=$tmp/$1 log=$tmp/$1.log rc=0 inputs all=0 own=0 name seeds others
	mkdir "$corpus"
	if ! "$dir/$target" --seeds "$corpus" >"$log" 2>&1; then
		sed 's/^/# /' "$log"
		say "not ok" "$target: does not begin"
		return
	fi
	echo "# $target: seed $seed, $(find "$corpus" -type f | wc -l) inputs to begin from"
	[[ -z $few ]] || runs=${short[$target]}
	libfuzzer "$dir/$target" "$corpus" "$log" || rc=$?
	inputs=$(sed -n 's/^inputs //p' "$log")
	if ((rc == 0)) && [[ -n $inputs ]]; then
		say ok "$target: whatever came, all held ($inputs inputs)"
	else
		say "not ok" "$target: status $rc, seed $seed"
	fi
	# A kind that no seed reaches would be reached by chance
	while read -r seeds others name; do
		all=$((all + 1))
		((others == 0)) || own=$((own + 1))
		if ((seeds)); then
			say ok "$target: $name: $seeds and $others times"
		else
			say "not ok" "$target: $name: by no seed, $others times"
		fi
	done < <(sed -nE 's/^# (.*[^ ]) +reached by ([0-9]+) seeds and ([0-9]+) others$/\2 \3 \1/p' "$log")
	# A run whose own inputs never came past the first checks would say nothing. Which kind they
	# miss is chance; a tenth of all, and one, may be missed
	if ((all && own + 1 + all / 10 >= all)); then
		say ok "$target: its own inputs reach $own of $all kinds"
	else
		say "not ok" "$target: its own inputs reach $own of $all kinds"
	fi
	tried+=("inputs ${inputs:-0} of $target")
}

for target in "${targets[@]}"; do
	fuzz "$target"
done
((${#tried[@]} == 0)) || printf '%s\n' "${tried[@]}"
exit $failed
