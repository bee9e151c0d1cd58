#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# container.sh STORE: the commands of Documentation/containers.md for podman, word for word but
# for HOST and the folder of models, as a user of the group rdma with 8 MiB of locked memory, in a
# guest with a stock kernel. Nothing in there is root's but the module and the user. STORE has the
# image, as a folder of podman's that others read.
set -u
. tests/lab/module.sh
store=$1
model=$LAB_BUILD/demo/model.safetensors
home=/tmp/podman-user
group=$(getent group rdma | cut -d: -f3)
[[ -n $group ]] || { group=2001; echo "rdma:x:2001:" >>/etc/group; }

# page WORD: the command of the page that has WORD, in one line
page() {
	sed -n '/^    podman run/,/[^\\]$/p' Documentation/containers.md | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' |
		grep -F -- "$1" | sed -e "s/HOST:/$LAB_IP:/" -e 's/^ *//'
}

# as_user COMMAND: by a shell of that user, in its home
as_user() {
	setpriv --reuid 2000 --regid 2000 --groups "2000,$group" --inh-caps=-all \
		env -i PATH="$PATH" HOME="$home" USER=podman-user XDG_RUNTIME_DIR="$home/run" \
		bash -c 'cd && ulimit -l 8192 && eval "$1"' as_user "$1"
}

# A user as a host has one, and the device as the udev rule of the package leaves it
prepare() {
	echo "podman-user:x:2000:2000::$home:/bin/bash" >>/etc/passwd
	echo "podman-user:x:2000:" >>/etc/group
	echo "podman-user:200000:65536" | tee -a /etc/subuid >>/etc/subgid
	mkdir -p "$home/run" "$home/.config/containers" /srv/models
	# No systemd, and no cgroups of the user's own
	modprobe fuse && chmod 666 /dev/fuse || return 1
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup || return 1
	printf '%s\n' '[containers]' 'cgroups = "disabled"' 'log_driver = "k8s-file"' '[engine]' 'runtime = "crun"' \
		'cgroup_manager = "cgroupfs"' 'events_logger = "file"' >"$home/.config/containers/containers.conf"
	printf '%s\n' '[storage]' 'driver = "overlay"' '[storage.options]' "additionalimagestores = [\"$store\"]" \
		'[storage.options.overlay]' 'mount_program = "/usr/bin/fuse-overlayfs"' \
		>"$home/.config/containers/storage.conf"
	chown -R 2000:2000 "$home"
	chmod 755 /tmp
	chgrp rdma /dev/rdmatensor && chmod 660 /dev/rdmatensor
	install -m 644 "$model" /srv/models/model.safetensors
}

serves() {
	as_user "exec $(page ' serve ')" >/tmp/served 2>&1 &
	local end=$((SECONDS + 300))
	while ((SECONDS < end)); do
		grep -q "serving" /tmp/served && return
		sleep 0.2
	done
	cat /tmp/served
	return 1
}

fetched() {
	as_user "$(page ' fetch ')" && cmp "$home/copy.safetensors" "$model" &&
		[[ $(stat -c %u "$home/copy.safetensors") == 2000 ]]
}

load
check "a user, and the device for its group" prepare
check "the image" as_user "podman image exists rdmatensor"
check "what the container is not given is refused" refused "open /dev/rdmatensor" \
	as_user "podman run --rm --network host rdmatensor ls $LAB_IP"
check "nor is the device without the group of any use" refused "Permission denied" \
	as_user "podman run --rm --network host --device /dev/rdmatensor rdmatensor ls $LAB_IP"
check "all is well" as_user "$(page ' doctor')"
check "it serves a model" serves
check "another one fetches it, and the file is the user's" fetched
check "it has no capability" as_user "podman run --rm --network host --entrypoint cat rdmatensor /proc/self/status |
	grep -E '^CapEff:[[:space:]]*0+\$'"
check "and 8 MiB of locked memory" as_user "podman run --rm --network host --entrypoint sh rdmatensor -c 'ulimit -l' |
	grep -x 8192"
check "what others do is not shown to it" as_user "podman run --rm --network host --device /dev/rdmatensor \
	--group-add keep-groups rdmatensor show contexts -j | grep -x '\[\]'"
check "soft-RoCE has no GID in a network namespace of its own" eval "as_user \
	'podman run --rm --network none --device /dev/rdmatensor --group-add keep-groups rdmatensor doctor' |
	tee /dev/stderr | grep -q 'has no RoCE v2 GID in this network namespace'"
check "the server ends" as_user "podman stop -t 10 -a"
wait
unload
exit "$failed"
