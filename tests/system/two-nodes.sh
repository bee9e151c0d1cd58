#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two nodes on a wire: node 0 serves a file, node 1 fetches it for some steps,
# by the tool alone; then the errors that a user meets.
set -u
. tests/lab/module.sh
. tests/lab/spawn.sh
tool=${LAB_BUILD:?}/ulib/bin/rdmatensor
model=$LAB_BUILD/demo/model.safetensors

# Fails, with that text
refused() {
	local text=$1
	shift
	"$@" 2>/tmp/err && return 1
	cat /tmp/err
	grep -q -- "$text" /tmp/err
}

serve() {
	spawn serving /tmp/serve "$tool" serve "$model" --listen "$LAB_IP:7000" --worker server \
		--steps 3
}

load

if [ "$LAB_NODE" = 0 ]; then
	check "serve a model" serve
	lab-barrier serving 60
	lab-barrier fetched 120
	check "the server ends well" eval 'kill $spawned && wait $spawned'
	lab-barrier stopped 60
else
	lab-barrier serving 60
	check "fetch all tensors for three steps" \
		"$tool" fetch "$LAB_PEER_IP:7000" --all --steps 3 -o /tmp/got.safetensors
	check "the file is the one that is served" \
		cmp /tmp/got.safetensors "$model"
	check "an unknown name times out" refused 'imed out' \
		"$tool" fetch "$LAB_PEER_IP:7000" nobody --timeout 1 -o /tmp/x.safetensors
	check "another worker name is refused" refused "'server'" \
		"$tool" fetch "$LAB_PEER_IP:7000" --peer-worker other --all -o /tmp/x.safetensors
	check "a closed port is refused" refused 'nobody listens' \
		"$tool" fetch "$LAB_PEER_IP:7001" --all -o /tmp/x.safetensors
	lab-barrier fetched 120
	lab-barrier stopped 60
	check "a server that has gone is refused" refused 'nobody listens' \
		"$tool" fetch "$LAB_PEER_IP:7000" --all -o /tmp/x.safetensors
fi
check "rmmod" rmmod rdmatensor
exit $failed
