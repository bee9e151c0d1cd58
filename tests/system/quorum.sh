# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# ulib/examples/quorum.c, which submits, polls, reaps and cancels by itself: two workers that have a
# tensor, and one that has not. Sourced by run.sh, with the module loaded.

quorum_tool=$LAB_BUILD/ulib/bin/rdmatensor
quorum_peers=("$LAB_IP:7041" "$LAB_IP:7042" "$LAB_IP:7043")

# quorum_model FILE NAME: 1 2 3 4, and 2 MiB of zeros as "long", as a safetensors file
quorum_model() {
	local header="{\"$2\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}"
	header+=",\"long\":{\"dtype\":\"F32\",\"shape\":[524288],\"data_offsets\":[16,2097168]}}"
	{
		# shellcheck disable=SC2059 # the length is an escape
		printf "\\x$(printf %x ${#header})\0\0\0\0\0\0\0"
		printf '%s\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100' "$header"
		head -c 2097152 /dev/zero
	} >"$1"
}

# quorum_says STATUS LINE... -- ARGUMENT...: its lines, in any order
quorum_says() {
	local status=$1 rc=0 lines=()
	shift
	while [[ $1 != -- ]]; do
		lines+=("$1")
		shift
	done
	shift
	timeout 50 "$LAB_BUILD/ulib/bin/quorum" "$@" >/tmp/quorum 2>&1 || rc=$?
	((rc == status)) && diff <(printf '%s\n' "${lines[@]}" | sort) <(sort /tmp/quorum) && return
	echo "status $rc:"
	cat /tmp/quorum
	return 1
}

# Of all three the fetch of the third is in flight, and no other
quorum_waits() {
	"$quorum_tool" show requests -j | jq -e 'length == 1 and .[0].peer == "quorum-2"' >/dev/null
}

# The only fetch that is left, when its peer goes; and the step after it
quorum_loses() {
	timeout 50 "$LAB_BUILD/ulib/bin/quorum" 3 g 0 2 60000 "${quorum_peers[@]}" >/tmp/quorum 2>&1 &
	local of=$! rc=0
	until_true quorum_waits || return 1
	kill -9 "${quorum_of[2]}"
	wait $of || rc=$?
	cat /tmp/quorum
	((rc == 1)) && grep -q "^step 0: ${quorum_peers[2]}: Connection reset by peer" /tmp/quorum &&
		grep -q "^step 1: ${quorum_peers[2]}: " /tmp/quorum &&
		(($(grep -cx "step [01]: 2 of 3: 2 4 6 8, without ${quorum_peers[2]}" /tmp/quorum) == 2))
}

quorum_model /tmp/quorum-g.safetensors g
quorum_model /tmp/quorum-h.safetensors h
quorum_of=()
for i in 0 1 2; do
	quorum_file=/tmp/quorum-g.safetensors
	((i < 2)) || quorum_file=/tmp/quorum-h.safetensors
	"$quorum_tool" serve $quorum_file --steps 12 --worker "quorum-$i" --listen "${quorum_peers[i]}" \
		>/tmp/quorum-$i 2>&1 &
	quorum_of+=($!)
	until_true grep -q serving /tmp/quorum-$i
done
check "the first two of three are added, the third is cancelled, in each step" quorum_says 0 \
	"step 0: 2 of 3: 2 4 6 8, without ${quorum_peers[2]}" \
	"step 1: 2 of 3: 2 4 6 8, without ${quorum_peers[2]}" -- 2 g 0 2 60000 "${quorum_peers[@]}"
# 2 MiB of each of two peers: twelve steps are three times the pool
mapfile -t quorum_lines < <(for i in {0..11}; do echo "step $i: 2 of 2: 0 0 0 0"; done)
check "memory is given back" quorum_says 0 "${quorum_lines[@]}" -- 2 long 0 12 60000 "${quorum_peers[@]:0:2}"
check "the third does not come in time" quorum_says 1 \
	"step 0: ${quorum_peers[2]}: Connection timed out" \
	"step 0: 2 of 3: 2 4 6 8, without ${quorum_peers[2]}" -- 3 g 0 1 4000 "${quorum_peers[@]}"
check "the third one's host goes" quorum_loses
kill "${quorum_of[@]:0:2}"
wait "${quorum_of[@]}"
