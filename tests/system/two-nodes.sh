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

# A way that carries short packets and drops full ones, as a switch of a smaller MTU does
narrow() {
	tc qdisc replace dev "$LAB_NETDEV" root tbf rate 1gbit burst 3000 limit 1000000
}

# The doctor's words on it: FAIL, at the content of full packets, and at nothing before it
narrow_is_found() {
	local got
	got=$("$tool" doctor -j "$LAB_PEER_IP:7002")
	jq . <<<"$got"
	jq -e '[.checks[] | select(.verdict == "FAIL")] as $bad | $bad | length == 1 and
		.[0].check == "fetch" and (.[0].text | startswith("32768 bytes from the peer, tensor ")) and
		(.[0].remedy | startswith("full packets do not come through"))' <<<"$got" &&
		jq -e '.checks | any(.verdict == "OK" and .check == "fetch" and
			(.text | startswith("1024 bytes")))' <<<"$got"
}
wide_is_well() { "$tool" doctor -j "$LAB_PEER_IP:7002" | jq -e '.verdict == "OK"'; }

serve_doctor() {
	spawn 'perf server' /tmp/doctor "$tool" perf --server --listen "$LAB_IP:7002"
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
	check "a server for the doctor" serve_doctor
	check "full packets are dropped on the way" narrow
	lab-barrier narrow 60
	lab-barrier found 120
	tc qdisc del dev "$LAB_NETDEV" root
	lab-barrier wide 60
	lab-barrier visited 120
	kill $spawned
	wait $spawned
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
		"$tool" fetch "$LAB_PEER_IP:7001" --wait 0 --all -o /tmp/x.safetensors
	lab-barrier fetched 120
	lab-barrier stopped 60
	check "a server that has gone is refused" refused 'nobody listens' \
		"$tool" fetch "$LAB_PEER_IP:7000" --wait 0 --all -o /tmp/x.safetensors
	lab-barrier narrow 60
	check "the doctor says that full packets do not come through" narrow_is_found
	lab-barrier found 120
	lab-barrier wide 60
	check "and that they do, when they do" wide_is_well
	lab-barrier visited 120
fi
check "rmmod" rmmod rdmatensor

# As `make install` leaves it: modprobe brings rdma_cm and what else it needs. depmod would
# look at all of the kernel's modules for minutes: here are those that matter
by_modprobe() {
	local root=/tmp/root kver path
	kver=$(uname -r)
	for path in $(modprobe --show-depends rdma_cm | awk '$1 == "insmod" { print $2 }'); do
		install -D -t "$root/lib/modules/$kver/kernel" "$path" || return 1
	done
	install -D -t "$root/lib/modules/$kver/updates" "$module" && depmod -b "$root" "$kver" &&
		modprobe -d "$root" --show-depends rdmatensor | grep -q '/rdma_cm[.]ko' &&
		modprobe -d "$root" rdmatensor lanes=2 &&
		[[ $(</sys/module/rdmatensor/parameters/lanes) == 2 ]] &&
		modprobe -d "$root" -r rdmatensor
}
[ "$LAB_NODE" = 1 ] || check "modprobe" by_modprobe
exit $failed
