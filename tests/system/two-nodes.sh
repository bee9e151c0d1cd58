#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two nodes on a wire: node 0 serves a file, node 1 fetches it for some steps,
# by the tool alone; then the errors that a user meets.
set -u
shopt -s extglob
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

# Names that nobody publishes, and one that somebody does
both_named() {
	"$tool" fetch "$LAB_PEER_IP:7000" nobody "$1" nothing --timeout 5 -o /tmp/x.safetensors 2>/tmp/err && return 1
	cat /tmp/err
	[[ $(grep -c 'imed out' /tmp/err) == 2 ]] && grep -q '"nobody"' /tmp/err &&
		grep -q '"nothing"' /tmp/err && ! grep -q "\"$1\"" /tmp/err
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

# A tensor of 64 MiB
wide=/tmp/wide.safetensors
make_wide() {
	local header='{"w":{"dtype":"F32","shape":[4096,4096],"data_offsets":[0,67108864]}}'
	# shellcheck disable=SC2059 # the length is made of escapes
	printf "$(printf '\\x%02x' ${#header})\\0\\0\\0\\0\\0\\0\\0" >$wide &&
		printf %s "$header" >>$wide && head -c 64M /dev/urandom >>$wide
}
serve_wide() {
	spawn serving /tmp/serve-wide "$tool" serve $wide --listen "$LAB_IP:7003"
}

# On the way to this node, so far
arrived() { cat "/sys/class/net/$LAB_NETDEV/statistics/rx_bytes"; }

# fetch_wide WHAT [ARGUMENT]...: sets ${wire[WHAT]} to bytes; what it took is in /tmp/WHAT.json
declare -A wire=()
fetch_wide() {
	local what=$1 before
	shift
	before=$(arrived)
	"$tool" fetch "$LAB_PEER_IP:7003" w -o "/tmp/$what.safetensors" "$@" -j >>"/tmp/$what.json" || return 1
	wire[$what]=$(($(arrived) - before))
}

# What the machine is least busy with otherwise
least_seconds() { jq -s '[.[].steps[0].seconds] | min' "/tmp/$1.json"; }

# The right half of the columns, of which rows are looked at here and there
half_is_right() {
	local row from to
	from=$(($(stat -c %s /tmp/whole.safetensors) - (64 << 20)))
	to=$(($(stat -c %s /tmp/half.safetensors) - (32 << 20)))
	for ((row = 0; row < 4096; row += 97)); do
		cmp -n 8192 -i $((from + row * 16384 + 8192)):$((to + row * 8192)) \
			/tmp/whole.safetensors /tmp/half.safetensors || return 1
	done
}

# What the wire carries, beside the whole tensor, and that it does not take as long: on a quiet machine
# it takes little more than half of the time, on a busy one the least of some attempts shows it. What is
# sent again counts twice
half_is_half() {
	local half whole
	for _ in 1 2 3 4 5 6; do
		fetch_wide whole && fetch_wide half --slice w=:,2048: || return 1
		half=$(least_seconds half) whole=$(least_seconds whole)
		echo "half: ${wire[half]} bytes, $half s; whole: ${wire[whole]} bytes, $whole s" | tee /tmp/figures
		jq -ne --argjson hb "${wire[half]}" --argjson wb "${wire[whole]}" \
			'($hb / $wb - 0.5 | fabs) < 0.01' || continue
		jq -ne --argjson hs "$half" --argjson ws "$whole" '$ws / $hs >= 1.2' && return
	done
	return 1
}

# What a model is served from and fetched into: pages that were there before, a file's among them
kinds=(huge:anon file:huge)
[[ ! -e /dev/dma_heap/system ]] || kinds+=(dmabuf:dmabuf)
serve_from() {
	spawn serving /tmp/from "$tool" serve "$model" --memory "$1" --listen "$LAB_IP:7020"
}
served_from() {
	local got
	got=$("$tool" show contexts -j | jq -c '.[0].counters | [.served_bytes, .copied_bytes]')
	echo "$got"
	kill $spawned && wait $spawned && [[ $got == [[]+([0-9]),0[]] ]]
}
# It is the model, of which the module has copied nothing
fetch_into() {
	"$tool" fetch "$LAB_PEER_IP:7020" --all --memory "$1" -o /tmp/into.safetensors -j >/tmp/into.json &&
		cmp /tmp/into.safetensors "$model" && jq -ce '.steps[0] |
			if .bytes > 0 and .copied_bytes == 0 then [.bytes, .copied_bytes] else empty end' \
			/tmp/into.json
}

# A network that is trained with digits: its server and worker 1 on node 0, worker 0 on node 1
digits=$LAB_BUILD/demo/digits.csv.gz steps=12
export RDMATENSOR_LIBRARY=$LAB_BUILD/ulib/lib/librdmatensor.so PYTHONPATH=$PWD/ulib/python
export PYTHONDONTWRITEBYTECODE=1
# train TYPE INDEX: in a subshell, which becomes it
train() {
	local nodes=("$LAB_IP" "$LAB_PEER_IP") places
	((LAB_NODE == 0)) || nodes=("$LAB_PEER_IP" "$LAB_IP")
	printf -v places '"ps":["%s:7010"],"worker":["%s:7011","%s:7012"]' \
		"${nodes[0]}" "${nodes[1]}" "${nodes[0]}"
	export TF_CONFIG="{\"cluster\":{$places},\"task\":{\"type\":\"$1\",\"index\":$2}}"
	exec /usr/bin/python3 ulib/examples/parameters.py run "$digits" "$steps"
}
# Bit for bit what one process computes
trained_as_alone() {
	(train worker 0) >/tmp/curve || return 1
	/usr/bin/python3 ulib/examples/parameters.py alone "$digits" 2 "$steps" >/tmp/alone && diff /tmp/alone /tmp/curve &&
		(($(wc -l </tmp/curve) == steps + 1))
}

load
# The model, and as much to fetch it into
echo 8 >/proc/sys/vm/nr_hugepages

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
	check "serve 64 MiB" eval 'make_wide && serve_wide'
	lab-barrier broad 60
	lab-barrier sliced 600
	kill $spawned
	wait $spawned
	for kind in "${kinds[@]}"; do
		check "serve from ${kind%:*}" serve_from "${kind%:*}"
		lab-barrier "served-${kind%:*}" 60
		lab-barrier "got-${kind%:*}" 120
		check "nothing of it was copied here" served_from
	done
	train ps 0 &
	spawned=$!
	check "a worker beside its parameters' server" eval '(train worker 1)'
	lab-barrier trained 120
	check "the server of the parameters ends well" eval 'kill $spawned && wait $spawned'
else
	lab-barrier serving 60
	check "fetch all tensors for three steps" \
		"$tool" fetch "$LAB_PEER_IP:7000" --all --steps 3 -o /tmp/got.safetensors
	check "the file is the one that is served" \
		cmp /tmp/got.safetensors "$model"
	check "an unknown name times out" refused 'imed out' \
		"$tool" fetch "$LAB_PEER_IP:7000" nobody --timeout 1 -o /tmp/x.safetensors
	check "of several names each that is unknown is told" both_named means.00.0
	check "who offers no model is waited for with a word" refused 'offers no model yet' \
		"$tool" fetch "$LAB_PEER_IP:7000" --all --step 7 --timeout 1 -o /tmp/x.safetensors
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
	lab-barrier broad 60
	check "half of the columns take half of the wire, and less time" half_is_half
	sed 's/^/# /' /tmp/figures
	check "they are the right half" half_is_right
	check "a slice that there is not" refused 'the tensor has no such slice' \
		"$tool" fetch "$LAB_PEER_IP:7003" w --slice w=:,:,0 -o /tmp/x.safetensors
	lab-barrier sliced 600
	for kind in "${kinds[@]}"; do
		lab-barrier "served-${kind%:*}" 60
		check "fetch into ${kind#*:}, and nothing is copied here" fetch_into "${kind#*:}"
		lab-barrier "got-${kind%:*}" 120
	done
	check "a network is trained on two nodes as in one process" trained_as_alone
	lab-barrier trained 120
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
