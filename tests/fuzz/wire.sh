#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# wire.sh [--runs N] [--seconds N] [--seed N]: the decoder of control messages under
# libFuzzer, for N messages or N seconds, from a corpus that is made for each run. TAP, and
# last "messages N ...". An input that failed is kept in build/fuzz.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$top/build/fuzz
. "$top/tests/fuzz/libfuzzer.sh"

take_options "$@"
if ((${#others[@]})); then
	echo "usage: wire.sh [--runs N] [--seconds N] [--seed N]" >&2
	exit 2
fi
((runs >= 0 || seconds > 0)) || seconds=15

make --no-print-directory -C "$top/tests/fuzz" O="$dir" "$dir/wire" "$dir/seeds"
corpus=$(mktemp -d)
log=$(mktemp)
trap 'rm -rf "$corpus" "$log"' EXIT
"$dir/seeds" "$corpus"
begun=$(find "$corpus" -type f | wc -l)
echo "# seed $seed, $begun messages to begin from"

rc=0
libfuzzer "$dir/wire" "$corpus" "$log" || rc=$?

messages=$(sed -n 's/^messages //p' "$log")
if ((rc == 0)) && [[ -n $messages ]]; then
	echo "ok 1 - whatever was taken was a right message ($messages)"
else
	echo "not ok 1 - the decoder, with status $rc: seed $seed"
	rc=1
fi
# A run whose own messages never came past the first checks would say nothing: more than all
# that it began from
number=1
for type in HELLO TENSOR_REQUEST META_DATA_RESPONSE TENSOR_RE_REQUEST ERROR_STATUS CANCEL \
	TABLE_OPEN TABLE_INFO LIST LIST_INFO CONNECTION; do
	number=$((number + 1))
	taken=$(sed -nE "s/^# $type +([0-9]+) taken$/\1/p" "$log")
	if ((${taken:-0} > begun)); then
		echo "ok $number - $type was taken $taken times"
	else
		echo "not ok $number - $type was taken ${taken:-0} times"
		rc=1
	fi
done
echo "messages ${messages:-0}"
exit $rc
