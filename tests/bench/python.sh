#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# python.sh ROUNDS: Python beside the tool, in turn, on one node: the demo's model of 256 tensors,
# once the channel is there, and gathers of 100000 random rows, one at a time. Lines as
# guest.sh's, into LAB_OUT/raw-python.
set -u
. tests/lab/spawn.sh
. tests/bench/record.sh
rounds=${1:-5}
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
raw=$LAB_OUT/raw-python
export RDMATENSOR_LIBRARY=$LAB_BUILD/ulib/lib/librdmatensor.so PYTHONPATH=$PWD/ulib/python
export PYTHONDONTWRITEBYTECODE=1

# Steps of which the first is not measured: the next ones find regions and names as they will
# always be. The median, in milliseconds
tool_load() {
	timeout 60 "$tool" fetch "$LAB_IP:7030" --all --steps 9 -q 256 --json -o /tmp/got >/tmp/load.json ||
		die "fetch failed"
	jq -r '[.steps[1:][].seconds] | sort | .[length / 2 | floor] * 1000' /tmp/load.json
}

tool_gather() {
	timeout 60 "$tool" gather "$LAB_IP:7031" --json -r 100000 -q 1 -n 8 >/tmp/gather.json ||
		die "gather failed"
	jq -r .rows_per_second /tmp/gather.json
}

rm -f "$raw"
insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
spawn ready /tmp/server.7030 "$tool" serve -j --steps 9 "$LAB_BUILD/demo/model.safetensors" \
	--listen "$LAB_IP:7030" || die "no server"
servers=("$spawned")
spawn ready /tmp/server.7031 "$tool" gather --server --json --row-bytes 512 --rows 0:200000 \
	--listen "$LAB_IP:7031" || die "no server of rows"
servers+=("$spawned")
for _ in $(seq "$rounds"); do
	record python_load_256 peer "$(tool_load)"
	record python_load_256 ours "$(/usr/bin/python3 tests/bench/python.py load "$LAB_IP:7030" 9)"
	record python_gather peer "$(tool_gather)"
	record python_gather ours "$(/usr/bin/python3 tests/bench/python.py gather "$LAB_IP:7031" 8)"
done
kill "${servers[@]}"
wait
rmmod rdmatensor || die "rmmod failed"
