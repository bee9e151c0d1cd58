#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--strict] [--scripts] [PATTERN...]: the system tests, or those that PATTERN names with the
# scripts beside them, if these are asked for; as root in a guest of the lab, and after them
# what must be true of the module: not to be removed while a context is open, to
# leave nothing behind. Receives must always be there: rnr_retry=0 shows it.
set -u
. tests/lab/module.sh

# What is more than the cases themselves, or depends on a parameter's default
all=
[[ $# -gt 0 || ${modes[*]} ]] || all=1
if [[ ${1-} == --scripts ]]; then
	all=1
	shift
fi

export TEST_IP6=fd00:7264::1
ip addr replace $TEST_IP6/64 dev "${LAB_NETDEV:?}" || exit 1

load rnr_retry=0
exec 9<>/dev/rdmatensor
if rmmod rdmatensor 2>/dev/null; then
	result "not ok" "rmmod while a context is open"
	exit 1
fi
result ok "rmmod is refused while a context is open"
exec 9>&-

# An exporter of dma-bufs that all stock kernels have
[[ $LAB_KERNEL != [0-9]* ]] || modprobe vgem || exit 1
"$LAB_BUILD"/system/system "$@" || {
	status=$?
	failed=1
	# Then it has not said itself what failed
	((status <= 128)) || result "not ok" "the cases ended by signal $((status - 128))"
}

# The README's first program, the one that gets begun before the one that offers until Enter
first_program() {
	local fetcher publisher
	timeout 60 "$LAB_BUILD"/system/first "$LAB_IP/weights" >/tmp/fetcher 2>&1 &
	fetcher=$!
	mkfifo /tmp/enter
	timeout 60 "$LAB_BUILD"/system/first <>/tmp/enter >/tmp/publisher 2>&1 &
	publisher=$!
	wait $fetcher || { cat /tmp/fetcher; return 1; }
	echo >/tmp/enter
	wait $publisher
	echo "$? publisher: $(</tmp/publisher), fetcher: $(</tmp/fetcher)"
	[[ $(</tmp/publisher) == "1 2 3 4" && $(</tmp/fetcher) == "1 2 3 4" ]]
}
[[ ! $all ]] || check "the README's first program" first_program

# shellcheck source=tests/system/trace.sh
[[ ! $all ]] || . tests/system/trace.sh
# shellcheck source=tests/system/ls.sh
[[ ! $all ]] || . tests/system/ls.sh
# shellcheck source=tests/system/quorum.sh
[[ ! $all ]] || . tests/system/quorum.sh
# shellcheck source=tests/system/device-goes.sh
[[ ! $all ]] || . tests/system/device-goes.sh
# shellcheck source=tests/system/failover.sh
[[ ! $all || $LAB_KERNEL == uml* ]] || . tests/system/failover.sh
unload

# What the README prints of `make demo`: tensors, bytes and messages of each step, and writes, to
# which a few acks may come. Here one node does what the demo has two for
demo() {
	local out=$LAB_OUT/demo
	mkdir -p "$out"
	LAB_OUT=$out LAB_NODES=1 tests/demo/node.sh "$LAB_BUILD/demo/model.safetensors" || return 1
	cmp "$out/got.safetensors" "$LAB_BUILD/demo/model.safetensors" || return 1
	sed -n '/^ *step  *tensors/,/^demo: /p' README.md | grep '^ *[0-9]' >/tmp/printed
	grep '^ *[0-9]' "$out/steps" | paste -d' ' /tmp/printed - | tee /tmp/both
	awk '$1 == $7 && $2 == $8 && $3 == $9 && $4 == $10 && $11 >= $5 && $11 < $5 * 1.05 { n++ }
		END { exit n != 3 || NR != 3 }' /tmp/both
}
[[ ! $all ]] || check "the demo's steps are those of the README" demo

# shellcheck source=tests/system/params.sh
[[ ! $all || $LAB_KERNEL != uml-debug ]] || . tests/system/params.sh
exit "$failed"
