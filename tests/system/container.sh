#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# container.sh: what a process in an unprivileged container can do, as root in a guest whose
# kernel has cgroups: no capability, user, mount and pid namespaces of its own, 8 MiB of
# RLIMIT_MEMLOCK, 64 MiB of memory, 24 objects of the RDMA device, and one device node.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor
model=$LAB_BUILD/demo/model.safetensors
groups=/tmp/container-groups

# contained GROUP COMMAND...: in that cgroup, as a user whose root is nobody outside
contained() {
	local group=$1
	shift
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		bash -c 'echo 0 >"$0" && ulimit -l 8192 &&
			exec unshare --user --map-root-user --mount --pid --fork --kill-child "$@"' \
		"$groups/$group/cgroup.procs" "$@"
}

group_of() {
	mkdir -p "$groups/$1" || return 1
	echo 64M >"$groups/$1/memory.max" || return 1
	echo 0 >"$groups/$1/memory.swap.max" 2>/dev/null
	echo "$LAB_RDMA_DEV hca_object=24" >"$groups/$1/rdma.max" || return 1
	chown 65534 "$groups/$1/cgroup.procs"
}

# Who writes 0 into a cgroup's file must be allowed to leave the group that it is in
prepare() {
	mkdir -p "$groups" && mount -t cgroup2 none "$groups" || return 1
	echo "+memory +rdma" >"$groups/cgroup.subtree_control" || return 1
	chown 65534 "$groups/cgroup.procs"
	group_of server && group_of client && chmod 666 /dev/rdmatensor && chmod 755 /tmp
}

serves() {
	contained server "$tool" serve -j "$@" --listen "$LAB_IP:7000" --worker pod >/tmp/served \
		2>/tmp/err &
	server=$!
	until_true grep -q ready /tmp/served || { cat /tmp/err; return 1; }
}

used() { cat "$groups/$1/memory.current"; }
objects() { sed -n "s/^$LAB_RDMA_DEV .*hca_object=//p" "$groups/$1/rdma.current"; }
fetched() {
	rm -rf /tmp/pod
	mkdir -m 777 /tmp/pod
	contained client "$tool" fetch "$LAB_IP:7000" --all -o /tmp/pod/got "$@" &&
		cmp /tmp/pod/got "$model"
}

load
check "groups of 64 MiB" prepare
check "a container serves a model" serves "$model"
check "and another fetches it" fetched
# By the device node: nothing of the other container, whose user is the same outside
check "the host sees it" eval '[[ $("$tool" show contexts -j | jq -c "map(.worker)") == "[\"pod\"]" ]]'
check "it sees nothing of the other" eval '[[ $(contained client "$tool" show contexts -j) == "[]" ]]'
shows_itself() {
	contained client timeout 60 bash -c '
		"$1" perf --server --max-size 64K --listen "$2:7002" --worker own >/dev/null 2>&1 &
		for ((i = 0; i < 50; i++)); do
			[[ $("$1" show pools -j) == "[]" ]] || break
		done
		"$1" show contexts -j
		"$1" show pools -j
		kill $!
		wait' - "$tool" "$LAB_IP" >/tmp/shown
	cat /tmp/shown
	[[ $(jq -cs 'map(map(.worker) | unique)' /tmp/shown) == '[["own"],["own"]]' ]] &&
		(($(jq -s '.[0][0].pid' /tmp/shown) < 100))
}
check "and itself, without a capability" shows_itself
check "into memory that it has already, which counts as locked" fetched --memory anon
check "the groups pay for it" eval '
	used server; objects server
	(($(used server) > $(stat -c %s "$model"))) && (($(objects server) > 1))'

# 256 MiB, in a file that nobody has written
truncate -s 256M /tmp/zeros
pool_too_long() {
	refused "memory" contained client "$tool" perf --server --max-size 256M \
		--listen "$LAB_IP:7001"
}
check "more than its memory is refused" pool_too_long
check "with no kill" eval '! dmesg | grep -i "out of memory\|oom-kill"'
check "more than its locked memory, of its own pages" refused "RLIMIT_MEMLOCK" \
	contained client "$tool" perf --server --max-size 16M --memory anon --listen "$LAB_IP:7001"
check "more than its objects of the device" eval '
	echo "$LAB_RDMA_DEV hca_object=1" >"$groups/client/rdma.max"
	refused "rdma.max" contained client "$tool" fetch "$LAB_IP:7000" --all -o /tmp/pod/none
	status=$?
	echo "$LAB_RDMA_DEV hca_object=24" >"$groups/client/rdma.max"
	((status == 0))'
check "which ends nothing of the other" fetched
check "the server is well" eval 'kill -0 $server && (($(used server) < 64 << 20))'
kill "$(pgrep -f "serve -j .*--worker pod" | tail -1)"
wait $server
check "nothing is left of either" eval '
	until_true eval "[[ -z \$(cat $groups/server/cgroup.procs $groups/client/cgroup.procs) ]]"
	cat "$groups"/{server,client}/rdma.current
	(($(objects server) + $(objects client) == 0))'
# A group that is removed with a limit and without use is in the device's list for ever, and freed:
# kernels to 6.12 at least crash when the device goes
echo "$LAB_RDMA_DEV hca_object=max" | tee "$groups"/{server,client}/rdma.max >/dev/null
rmdir "$groups"/{server,client} 2>/dev/null
umount "$groups"
unload
exit "$failed"
