# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For scripts that test the module in a guest of the lab: load it, and see that it
# leaves nothing behind. Sourced, never run. Cases are counted from 1000 on, above
# those of the programs that the script runs; $failed becomes 1 if one failed.

# --strict as the first argument of the script: contexts are in strict mode unless they say
# otherwise, and programs find TEST_STRICT.
modes=()
if [[ ${1-} == --strict ]]; then
	modes=(mr_mode=2)
	export TEST_STRICT=1
	shift
fi
module=${LAB_BUILD:?}/kmod/${LAB_KERNEL:?}/rdmatensor.ko
number=1000
failed=0
result_at=$SECONDS

# result ok|"not ok" TEXT: and how long it took since the one before, if that is seconds
result() {
	local took=$((SECONDS - result_at))
	result_at=$SECONDS
	number=$((number + 1))
	[[ $1 == ok ]] || failed=1
	echo "$1 $number - $2"
	((took < 2)) || echo "# $2: $took s"
}

# check NAME COMMAND...: a case, which COMMAND decides; what it says is shown if it fails
check() {
	local name=$1
	shift
	if "$@" >/tmp/out 2>&1; then
		result ok "$name"
	else
		sed 's/^/# /' /tmp/out
		result "not ok" "$name"
	fi
}

# refused TEXT COMMAND...: with status 1 and a message that has TEXT
refused() {
	local text=$1 status
	shift
	"$@" >/tmp/told 2>&1
	status=$?
	cat /tmp/told
	((status == 1)) && grep -qF -- "$text" /tmp/told
}

# until_true COMMAND...: within a minute, which is for a machine that has other things to do
until_true() {
	local end=$((SECONDS + 60))
	while ((SECONDS < end)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	"$@"
}

# load [PARAMETER...]: or the script ends
load() {
	insmod "$module" "${modes[@]}" "$@" && return
	result "not ok" "insmod ${modes[*]} $*"
	exit 1
}

rdma_resources() { rdma resource show | tr -d '\n'; }

# Out of use it can be unloaded, has returned what it took, and can be loaded again.
# What rxe and rdma_cm have of their own is there before and after.
unload() {
	local before
	before=$(rdma_resources)
	if rmmod rdmatensor; then
		result ok rmmod
	else
		result "not ok" rmmod
	fi
	if [[ $(rdma_resources) == "$before" ]]; then
		result ok "no RDMA resource was left"
	else
		printf '# %s\n' "$before" "$(rdma_resources)"
		result "not ok" "RDMA resources were left to unload"
	fi
	if insmod "$module" && rmmod rdmatensor; then
		result ok "loads and unloads again"
	else
		result "not ok" "loads and unloads again"
	fi
}
