#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh ROOT.squashfs HEADERS COMPILED: the packages of build/deb in a fresh Debian 12 with systemd,
# in a guest with a stock kernel: installed by apt, used by who may and refused to who may not, the service
# killed and restarted while others fetch, built anew for a kernel whose packages are in the folder
# HEADERS, and purged again. COMPILED is what ccache knows of these builds. Debian runs in a pid and a
# mount namespace of its own beside the guest's first process; kernel, devices, cgroups and network
# are the guest's.
set -u
. tests/lab/module.sh
model=$LAB_BUILD/demo/model.safetensors
debian=/mnt/debian
unit=rdmatensor-serve@demo
stock=$(realpath "/lib/modules/$LAB_KVER")

# ---- the Debian --------------------------------------------------------------

# Its root, writable, with the modules of the kernel that runs as if they were installed, too
make_root() {
	modprobe -a loop squashfs || return 1
	mkdir -p /mnt/lower /mnt/writes "$debian"
	mount -o loop,ro "$1" /mnt/lower && mount -t tmpfs writes /mnt/writes || return 1
	mkdir /mnt/writes/{root,root-work,modules,modules-work}
	mount -t overlay -o "lowerdir=/mnt/lower,upperdir=/mnt/writes/root,workdir=/mnt/writes/root-work" \
		debian "$debian" &&
		mount -t overlay -o "lowerdir=/mnt/lower/usr/lib/modules:${stock%/*},upperdir=/mnt/writes/modules,workdir=/mnt/writes/modules-work" \
			modules "$debian/usr/lib/modules" || return 1
	mkdir -p "$debian/srv/debs" "$debian/srv/models"
	mkdir "$debian/srv/headers" && cp "$2"/*.deb "$debian/srv/headers/" &&
		cp "$LAB_BUILD"/deb/*.deb "$debian/srv/debs/" && rm -f "$debian"/srv/debs/*-dbgsym_*
	cp -a "$3" "$debian/srv/ccache" && echo "cache_dir = /srv/ccache" >"$debian/etc/ccache.conf" &&
		echo 'DPkg::Path "/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin";' >"$debian/etc/apt/apt.conf.d/90ccache" || return 1
	install -m 644 "$model" "$debian/srv/models/demo.safetensors"
	# The guest's own devices are not its business, nor is what is done daily: it leaves files, as
	# the backup of dpkg's state does at midnight
	chroot "$debian" find /usr/lib/systemd/system -name '*.timer' -printf '%f\0' |
		xargs -0 chroot "$debian" systemctl -q mask systemd-udev-trigger.service
}

# Where guests are emulated, a system comes up in minutes
until_true() {
	local end=$((SECONDS + 300))
	while ((SECONDS < end)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.2
	done
	"$@"
}

# What a first process finds: it becomes the root, and the guest's own is gone from there
# shellcheck disable=SC2016 # for the inner shell
enter='mount --make-rprivate / && cd "$0" &&
	mount -t proc proc proc && mount -t sysfs sys sys && mount -t cgroup2 cgroup2 sys/fs/cgroup &&
	mount -t devtmpfs dev dev && mkdir -p dev/pts dev/shm && mount -t devpts devpts dev/pts &&
	mount -t tmpfs shm dev/shm && mount -t tmpfs run run && mount -t tmpfs tmp tmp &&
	pivot_root . . && umount -l . && exec /sbin/init'

boot() {
	env -i container=lab PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		unshare --pid --fork --kill-child --mount bash -c "$enter" "$debian" &
	unshared=$!
	until_true pgrep -P "$unshared" && init=$(pgrep -P "$unshared") || return 1
	until_true eval '[[ $(in_debian systemctl is-system-running) =~ running|degraded ]]' &&
		in_debian useradd --create-home may && in_debian useradd --create-home may_not
}

in_debian() {
	nsenter --target "$init" --pid --mount -- \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 "$@"
}

as() { in_debian runuser -u "$1" -- "${@:2}"; }

# All files but those that any installation changes
files() {
	in_debian find / /usr/lib/modules -xdev ! -path '/var/lib/dpkg/*' ! -path '/var/lib/apt/*' \
		! -path '/var/cache/*' ! -path '/var/log/*' ! -path '/var/lib/systemd/*' ! -path '/usr/lib/modules/*/modules.*' \
		! -path '/home/*' ! -path '/etc/*-' ! -path '/srv/ccache/*' | sort
}

# ---- what is done in it ------------------------------------------------------

device_is() { [[ $(in_debian stat -c '%U:%G %a' /dev/rdmatensor) == "$1" ]]; }

serves() {
	as may rdmatensor serve "$@" >/tmp/served 2>&1 &
	server=$!
	until_true grep -q serving /tmp/served || { cat /tmp/served; return 1; }
}

# The guest sees Debian's processes, too
ended() {
	pkill -TERM -x rdmatensor && wait "$server"
}

fetched() {
	as may rm -f /home/may/got
	as may rdmatensor fetch "$LAB_IP" --all -o /home/may/got "$@" &&
		in_debian cmp /home/may/got /srv/models/demo.safetensors
}

# What is of the source alone is not linked to
links_lead() {
	local page link nr=0 dead=0
	while IFS=: read -r page link; do
		nr=$((nr + 1))
		in_debian test -e "/usr/share/doc/${page%/*}/$link" || { echo "$page: $link"; dead=1; }
	done < <(in_debian sh -c 'cd /usr/share/doc &&
		grep -o "](\([a-z0-9_./-]*\)[.]md" rdmatensor/*.md python3-rdmatensor/*.md | sed "s/](//"')
	((nr > 30 && !dead))
}

shows() {
	local value
	value=$(in_debian systemctl show -P "$1" "$unit")
	# shellcheck disable=SC2053 # a pattern
	[[ $value == $2 ]] && return
	echo "$1 is $value, expected $2"
	in_debian systemctl status --no-pager -l "$unit"
	in_debian journalctl --no-pager -n 40 -u "$unit"
	return 1
}

# How often the journal has these words of the unit
said() { in_debian journalctl --no-pager -o cat -u "$unit" | grep -c -- "$1"; }

# Milliseconds from the start of its process until it said that it was ready
start_ms() {
	local begin end
	begin=$(in_debian systemctl show -P ExecMainStartTimestampMonotonic "$unit")
	end=$(in_debian systemctl show -P ActiveEnterTimestampMonotonic "$unit")
	echo $(((end - begin) / 1000))
}

# Where guests are emulated all takes ten times as long
limit_ms=1000
[[ $(systemd-detect-virt --vm) == kvm ]] || limit_ms=10000

main_pid() { in_debian systemctl show -P MainPID "$unit"; }

# restarted PID: another process is ready
restarted() { shows ActiveState active && [[ $(main_pid) != "$1" ]]; }

# Fetches go on, and most are cut: a whole file is the model
fetch_loop() {
	while [[ ! -e /tmp/enough ]]; do
		rm -f "$debian/home/may/loop"
		as may rdmatensor fetch "$LAB_IP" --all -o /home/may/loop >/dev/null 2>&1 || continue
		echo >>/tmp/whole
		in_debian cmp /home/may/loop /srv/models/demo.safetensors || echo differs >/tmp/differs
	done
}

killed_in_a_loop() {
	local round pid
	for round in 1 2 3 4 5; do
		pid=$(main_pid)
		in_debian systemctl kill --signal=KILL "$unit" && until_true restarted "$pid" || return 1
		echo "restart $round: ready after $(start_ms) ms" | tee -a /tmp/restarts
		(($(start_ms) < limit_ms)) || return 1
	done
}

# How much of it the emulated compiler had to do
compiled() { in_debian ccache --show-stats | sed -n 's/^ *\(Hits\|Misses\): */# ccache: \1 /p' | tee /tmp/compiled; }

check "a root" make_root "${1:?usage: guest.sh ROOT.squashfs HEADERS COMPILED}" "$2" "$3"
check "systemd is up" boot
check "and does nothing by the clock" eval 'told=$(in_debian systemctl list-timers --no-legend) && [[ -z $told ]]'
((failed == 0)) || exit 1
in_debian ccache --zero-stats >/dev/null
files >/tmp/before
check "apt install" eval 'in_debian sh -c "apt-get install -y -q --no-install-recommends /srv/debs/*.deb"'
sed 's/^/# /' /tmp/out
compiled
check "nothing of it had to be compiled again" grep -q "Misses 0 /" /tmp/compiled
check "links of pages lead to pages" links_lead
check "the module is DKMS's" eval '[[ $(in_debian modinfo -n rdmatensor) == */updates/dkms/rdmatensor.ko* ]]'
check "modprobe" in_debian modprobe rdmatensor
check "the device file is for the group rdma" until_true device_is "root:rdma 660"
check "soft-RoCE" eval 'in_debian rdma link add "$LAB_RDMA_DEV" type rxe netdev "$LAB_NETDEV"'
check "a user of the group" in_debian usermod --append --groups rdma may
check "serves a model" serves /srv/models/demo.safetensors
check "which it fetches" fetched
check "a user who is not of the group is told so" eval '
	! as may_not rdmatensor info --start >/tmp/told 2>&1; cat /tmp/told; grep -q group /tmp/told'
check "the end of the server" ended

in_debian sh -c 'printf "%s\n" MODEL=/srv/models/demo.safetensors "OPTIONS=--worker demo" >/etc/rdmatensor/demo.conf'
check "the unit is as systemd wants it" eval '
	in_debian systemd-analyze verify --man=no "$unit.service" >/tmp/told 2>&1 && cat /tmp/told && [[ ! -s /tmp/told ]]'
check "it starts" in_debian systemctl enable --now "$unit"
check "it says what it serves" shows StatusText "serving 256 tensors, * bytes of /srv/models/demo.safetensors"
check "systemd keeps its domain" shows NFileDescriptorStore 1
# Those of users that exist as long as a service
check "it has a user of its own" eval 'uid=$(in_debian stat -c %u "/proc/$(main_pid)"); ((uid >= 61184 && uid <= 65519))'
check "and no capability" eval 'grep -q "^CapEff:.*0000000000000000$" <(in_debian cat "/proc/$(main_pid)/status")'
check "it is fetched from" fetched
: >/tmp/whole
fetch_loop &
fetcher=$!
check "it is killed and restarted while others fetch" killed_in_a_loop
sed 's/^/# /' /tmp/restarts
touch /tmp/enough
wait $fetcher
echo "# $(wc -l </tmp/whole) whole files"
check "whoever got a file got the model" eval '[[ ! -e /tmp/differs ]] && fetched'
check "no restart has read the file" eval '(($(said "serving 256") == 6 && $(said "taken up from systemd") == 5))'
check "systemctl restart" in_debian systemctl restart "$unit"
check "takes it up, too" eval '(($(said "taken up from systemd") == 6)) && fetched'
in_debian touch /srv/models/demo.safetensors
check "a restart with another file" in_debian systemctl restart "$unit"
check "reads it, and leaves nothing of the former one" eval '
	(($(said "that is freed") == 1)) && shows NFileDescriptorStore 1 && fetched &&
	[[ $(in_debian rdmatensor show domains -j | jq length) == 1 ]]'
check "a stop" in_debian systemctl stop "$unit"
check "frees everything" eval '[[ $(in_debian rdmatensor show domains -j) == "[]" ]]'
check "another start" in_debian systemctl start "$unit"

# To dpkg an upgrade and the same version once more are one thing
metrics=/var/lib/prometheus/node-exporter
in_debian mkdir -p "$metrics"
check "the timer of the metrics" in_debian systemctl enable --now rdmatensor-metrics.timer
check "writes them" until_true in_debian grep -q rdmatensor_ "$metrics/rdmatensor.prom"
in_debian chown root:root /dev/rdmatensor
before=$(main_pid)
check "an upgrade" in_debian sh -c "apt-get install -y -q --reinstall --no-install-recommends /srv/debs/rdmatensor_*.deb"
check "has the service go on with its program" until_true restarted "$before"
check "which takes up the model" eval '(($(said "taken up from systemd") == 7)) && fetched'
check "has the timer go on" in_debian systemctl is-active -q rdmatensor-metrics.timer
check "and the device file is the group's" until_true device_is "root:rdma 660"

# Its headers come with a hook of DKMS's; the image would have one, too
new=$(basename "$2"/linux-headers-*-common_*)
new=${new#linux-headers-} new=${new%%-common_*}-amd64
in_debian ls /var/lib/dpkg/info >/tmp/packages
check "a kernel comes" in_debian sh -c "apt-get install -y -q --no-install-recommends --allow-downgrades /srv/headers/*.deb"
sed 's/^/# /' /tmp/out
check "DKMS builds for it" eval '
	[[ $(in_debian modinfo -F vermagic -k "$new" rdmatensor) == "$new "* ]] ||
		{ in_debian sh -c "cat /var/lib/dkms/rdmatensor/*/build/make.log"; false; }'
compiled
check "nor for that" grep -q "Misses 0 /" /tmp/compiled
# Packages of headers have no hook of their end: it is the image's that tells DKMS, and that cleans up
check "it goes" in_debian run-parts --arg="$new" /etc/kernel/prerm.d
check "and the module of it" eval '
	! in_debian modinfo -k "$new" rdmatensor && ! in_debian dkms status | grep -F "$new"'
# shellcheck disable=SC2034 # in the case
mapfile -t came < <(in_debian ls /var/lib/dpkg/info | comm -13 /tmp/packages - | sed -n 's/[.]list$//p')
check "its packages, too" eval '((${#came[@]} >= 2)) && in_debian apt-get purge -y -q "${came[@]}" && in_debian sh -c "
	rm -f /usr/lib/modules/$new/modules.*; [ ! -e /usr/lib/modules/$new ] || rmdir /usr/lib/modules/$new"'

in_debian rm /etc/rdmatensor/demo.conf
check "apt purge" eval 'in_debian apt-get purge -y -q rdmatensor rdmatensor-dkms librdmatensor1 librdmatensor-dev python3-rdmatensor'
check "has stopped the service" eval '! pgrep -x rdmatensor'
check "has stopped the timer" eval '! in_debian systemctl is-active -q rdmatensor-metrics.timer'
check "has taken the metrics away" in_debian rmdir "$metrics" "${metrics%/*}"
check "the module is free" in_debian rmmod rdmatensor
files >/tmp/after
comm -13 /tmp/before /tmp/after | sed 's/^/# left: /'
check "nothing is left" diff /tmp/before /tmp/after
exit "$failed"
