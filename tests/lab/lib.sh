# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# What the lab's commands share. Sourced, never run. Everything a person reads
# goes to stderr; stdout belongs to the caller (a path, a script's output).

PATH=$PATH:/usr/sbin:/sbin

LAB_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
LAB_TOP=$(cd "$LAB_DIR/../.." && pwd -P)
LAB_CACHE=${RDMATENSOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmatensor}
LAB_KERNELS="uml uml-debug uml-gcov smp-debug smp-kcsan 6.1 6.12"

# Exit statuses of the lab itself; everything else is the script's own.
LAB_E_SPLAT=97		# the script passed, the kernel complained
LAB_E_DIED=98		# the guest ended without a status: panic, reset
LAB_E_TIMEOUT=124
LAB_E_LAB=125		# no guest: wrong usage, no package, no build

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit "$LAB_E_LAB"; }

live_terminal() { [[ -t 2 && ${TERM:-dumb} != dumb ]]; }

# Cursor control is no colour, but who sets NO_COLOR wants plain text.
live_line() { [[ -z ${NO_COLOR:-} ]] && live_terminal; }

check_kernel() {
	local k
	for k in $LAB_KERNELS; do
		[[ $1 == "$k" ]] && return
	done
	die "no such kernel: '$1'. There are: $LAB_KERNELS"
}

is_uml() { [[ $1 == uml* ]]; }
is_built() { is_uml "$1" || [[ $1 == smp-* ]]; }

# image KERNEL: the directory of that kernel, which is made if it is not there yet.
image() {
	if is_built "$1"; then
		"$LAB_DIR/built" "$1"
	else
		"$LAB_DIR/stock" "$1"
	fi
}

# ready KERNEL: it is there, and nothing has to be fetched or built first.
ready() {
	if is_built "$1"; then
		"$LAB_DIR/built" "$1" --ready
	else
		newest_complete "$LAB_CACHE/stock-$1"-* >/dev/null
	fi
}

# Where mmdebstrap gets Debian 12 from
debian_12=("deb http://deb.debian.org/debian bookworm main"
	"deb http://deb.debian.org/debian bookworm-updates main"
	"deb http://security.debian.org/debian-security bookworm-security main")

# kill_group PID: ends what start_group started, and all that it started.
kill_group() {
	kill -TERM -- "-$1" 2>/dev/null || return 0
	local i
	for ((i = 0; i < 20; i++)); do
		kill -0 -- "-$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL -- "-$1" 2>/dev/null || true
}

# phase TEXT LOG COMMAND...: runs COMMAND with its output in LOG, and tells how
# long it has been at it. Returns COMMAND's status; on failure the end of LOG
# is shown. COMMAND gets a process group of its own, so that an interrupt ends
# all of it.
phase() {
	local text=$1 log=$2 t0=$SECONDS told=0 pid rc=0
	shift 2
	setsid "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # this pid, not a later one
	trap "kill_group $pid; exit 130" INT TERM HUP
	live_line || say "$text ..."
	while kill -0 "$pid" 2>/dev/null; do
		if live_line; then
			printf '\r\033[Klab: %s ... %d s  %.50s' "$text" \
				$((SECONDS - t0)) "$(tail -n 1 "$log" | tr -d '\r')" >&2
		elif ((SECONDS - t0 - told >= 60)); then
			told=$((SECONDS - t0))
			say "$text ... $told s"
		fi
		sleep 0.3
	done
	wait "$pid" || rc=$?
	trap - INT TERM HUP
	if live_line; then
		printf '\r\033[K' >&2
	fi
	if ((rc)); then
		say "$text: FAILED after $((SECONDS - t0)) s, status $rc. The end of $log:"
		tail -n 25 "$log" >&2
	else
		say "$text: done in $((SECONDS - t0)) s"
	fi
	return "$rc"
}

# with_lock NAME COMMAND...: one at a time on this machine for each NAME.
with_lock() {
	local name=$1 fd rc=0
	shift
	mkdir -p "$LAB_CACHE"
	exec {fd}>"$LAB_CACHE/$name.lock"
	if ! flock -n "$fd"; then
		say "waiting for another run that prepares $name ..."
		flock -w 3600 "$fd" || die "gave up waiting for $LAB_CACHE/$name.lock"
	fi
	"$@" || rc=$?
	exec {fd}>&-
	return "$rc"
}

# newest GLOB-MATCHES...: the highest version of those that are complete.
newest_complete() {
	local d best=
	for d in "$@"; do
		[[ -e $d/.complete ]] || continue
		if [[ -z $best ]] || dpkg --compare-versions "${d##*/}" gt "${best##*/}"; then
			best=$d
		fi
	done
	[[ -n $best ]] && printf '%s\n' "$best"
}
