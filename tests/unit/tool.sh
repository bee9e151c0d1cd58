#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# tool.sh BIN: the programs in BIN as a shell sees them: exit codes and texts. TAP.
set -u
bin=$1
number=0
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

ok() {
	number=$((number + 1))
	if [[ $1 == 0 ]]; then
		echo "ok $number - $2"
	else
		sed 's/^/# /' "$tmp/said"
		echo "not ok $number - $2"
		failed=1
	fi
}

# ends STATUS TEXT NAME COMMAND...: it ends with that, and says so on stderr
ends() {
	local status=$1 words=$2 name=$3 got
	shift 3
	"$@" >"$tmp/out" 2>"$tmp/said"
	got=$?
	[[ $got == "$status" ]] && grep -qF -- "$words" "$tmp/said"
	ok $? "$name"
}

# full STATUS COMMAND...: its output has nowhere to go
full() {
	"${@:2}" >/dev/full 2>"$tmp/said"
	[[ $? == "$1" ]] && grep -qF 'No space left on device' "$tmp/said"
	ok $? "output that cannot be written: ${*:3}"
}

full 1 "$bin/rdmatensor" --version
full 1 "$bin/rdmatensor" --help
for command in serve fetch perf gather info doctor show top metrics set monitor; do
	full 1 "$bin/rdmatensor" $command --help
done

# helps COMMAND: "help COMMAND" is what "COMMAND --help" is
helps() {
	"$bin/rdmatensor" help "$1" >"$tmp/out" 2>"$tmp/said" &&
		"$bin/rdmatensor" "$1" --help | cmp - "$tmp/out" 2>"$tmp/said"
	ok $? "help $1"
}
helps fetch
helps set
ends 2 "help takes one COMMAND" "help of two" "$bin/rdmatensor" help serve fetch
ends 2 "without =: set lanes 4" "set NAME=VALUE" "$bin/rdmatensor" set lanes=4
ends 2 "seconds from 0.001" "perf for no time" "$bin/rdmatensor" perf -D 0 nobody
ends 2 "--rows is what a --server exports" "a client with rows" \
	"$bin/rdmatensor" gather --rows 0:5 nobody
ends 2 "--exit-after is of a --server" "a client of perf with --exit-after" \
	"$bin/rdmatensor" perf --exit-after 2 nobody
ends 2 "--exit-after is of a --server" "a client of gather with --exit-after" \
	"$bin/rdmatensor" gather --exit-after 2 nobody
ends 2 "--row-bytes 12 is refused: give a multiple of 8 from 8 to" "rows of no multiple" \
	"$bin/rdmatensor" gather --server --rows 0:5 --row-bytes 12
ends 2 "in digits alone" "rows with a unit" "$bin/rdmatensor" gather --server --rows 0:1K
ends 2 "give -o OUT.safetensors" "a file without a name" "$bin/rdmatensor" fetch nobody -a -o ''
ends 2 'there is no command "nosuch"' "help of what is not there" "$bin/rdmatensor" help nosuch

ends 1 "load the module with" "the first program without the module" \
	env RDMATENSOR_DEVICE_PATH="$tmp/none" "$bin/first"

# A graph that is none
graph() {
	printf '%s\n' "${@:2}" >"$tmp/graph"
	ends 1 "$1" "a graph of \"${*:2}\"" "$bin/neighbours" sample "$tmp/graph" nobody
}
graph "line 1 is no pair" "-1 0"
graph "line 1 is no pair" "0 -1"
graph "line 1 is no pair" "4294967296 0"
graph "line 1 is no pair" "18446744073709551615 0"
graph "line 1 is no pair" "99999999999999999999 0"
graph "line 1 is no pair" "0 1 2"
graph "line 1 is no pair" "word 1"
graph "line 1 is no pair" ""
graph "line 3 is no pair" "1 2" "2 1" "3"
printf '1 2\0 3\n' >"$tmp/graph"
ends 1 "line 1 is no pair" "a graph with a zero byte" "$bin/neighbours" sample "$tmp/graph" nobody
printf '1 2\n\0 3\n' >"$tmp/graph"
ends 1 "line 2 is no pair" "a graph with a zero byte in front" \
	"$bin/neighbours" sample "$tmp/graph" nobody
ends 1 "Is a directory" "a graph that is a folder" "$bin/neighbours" sample "$tmp" nobody
printf '0 1\r\n1\t0 ' >"$tmp/graph"
ends 1 "No such file" "a graph of another system, without an end of its last line" \
	env RDMATENSOR_DEVICE_PATH="$tmp/none" "$bin/neighbours" sample "$tmp/graph" nobody
ends 1 "No such file" "a graph that is not there" "$bin/neighbours" sample "$tmp/none" nobody
: >"$tmp/graph"
ends 1 "No data" "a graph of nothing" "$bin/neighbours" sample "$tmp/graph" nobody
for rows in "0 0" "5 5" "5 4" "0 2305843009213693953"; do
	# shellcheck disable=SC2086
	ends 1 "give START before END" "features of nodes $rows" \
		"$bin/neighbours" serve 127.0.0.1 $rows
done
echo "1..$number"
exit $failed
