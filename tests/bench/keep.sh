#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# keep.sh ROUNDS: the time until `serve --keep` serves a model of 1 GiB, on one node: when its domain
# is there already, its last server killed while others fetch, beside the first time, when it has to be
# read. keep_restart is from exec(), keep_pool is serve's own load_us: an emulated processor spends most
# of the former on linking the program. Lines as guest.sh's, into LAB_OUT/raw-keep.
set -u
. tests/bench/record.sh
rounds=${1:-5}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
raw=$LAB_OUT/raw-keep
model=/tmp/big.safetensors socket=/tmp/big.sock tensors=256

now_us() { echo "${EPOCHREALTIME/[.,]/}"; }

milliseconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

free_mb() { awk '/^MemFree/ { print int($2 / 1024) }' /proc/meminfo; }

# Whether the memory is there again that there was, and no region is left, in 30 s. Not to the
# megabyte, for the page cache has other files, too.
is_free() {
	local end=$((SECONDS + 30))

	until [[ -z $(rdma resource show mr) ]] && ((free - $(free_mb) < 256)); do
		((SECONDS < end)) || return
		sleep 0.1
	done
}

# A safetensors file: $tensors of 4 MiB, of a real model's bytes over and over
make_model() {
	local header len
	header=$(jq -nc --argjson nr "$tensors" '[range($nr) | {"key": "layer.\(.)", "value":
		{dtype: "F32", shape: [1024, 1024], data_offsets: [. * 4194304, (. + 1) * 4194304]}}] |
		from_entries')
	while ((${#header} % 8)); do header+=' '; done
	len=${#header}
	{
		for _ in 1 2 3 4 5 6 7 8; do
			# shellcheck disable=SC2059 # a byte, as printf has it
			printf "\\x$(printf '%02x' $((len & 255)))"
			len=$((len >> 8))
		done
		printf '%s' "$header"
		while cat "$LAB_BUILD/demo/model.safetensors"; do :; done 2>/dev/null |
			head -c $((tensors * 4194304))
	} >"$model"
}

# serves TAKEN_UP SIDE: until it is ready; $server is it
serves() {
	local begun line took
	begun=$(now_us)
	exec {ready}< <(exec "$tool" serve -j --keep "$socket" "$model" --listen "$LAB_IP:7000")
	server=$!
	read -r -t 300 line <&"$ready" || die "it does not serve"
	took=$(($(now_us) - begun))
	[[ $(jq .taken_up <<<"$line") == "$1" ]] || die "taken_up is not $1: $line"
	record keep_restart "$2" "$(milliseconds "$took")"
	record keep_pool "$2" "$(milliseconds "$(jq .load_us <<<"$line")")"
}

ends() {
	kill "-$1" "$server"
	wait "$server" 2>/dev/null
	exec {ready}<&-
}

mount -o remount,size=5G /tmp
make_model
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
free=$(free_mb)
for round in $(seq "$rounds"); do
	serves false peer
	while :; do
		"$tool" fetch "$LAB_IP:7000" layer.0 layer.200 -o /tmp/some --wait 0 >/dev/null 2>&1 || continue
		echo >>/tmp/fetched
	done &
	fetcher=$!
	for _ in 1 2 3; do
		before=$(wc -l 2>/dev/null </tmp/fetched || echo 0)
		until (($(wc -l 2>/dev/null </tmp/fetched || echo 0) > before)); do sleep 0.05; done
		ends KILL
		serves true ours
	done
	kill "$fetcher"
	wait "$fetcher" 2>/dev/null
	# Its last fetch would wait for the next server
	pkill -f 'rdmatensor fetch'
	if ((round == 1)); then
		"$tool" fetch "$LAB_IP:7000" --all -o /tmp/whole || die "the last server cannot be fetched from"
		cmp /tmp/whole "$model" || die "what it serves is not the model"
		rm /tmp/whole
	fi
	"$tool" domain end "$socket" || die "its end failed"
	ends TERM
	is_free || die "$free MiB were free, $(free_mb) are; regions: $(rdma resource show mr)"
done
rmmod rdmatensor || die "rmmod failed"
