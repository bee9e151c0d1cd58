# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# `rdmatensor ls` of a served model, against the model's own header. Sourced by run.sh, with the
# module loaded.

lister=$LAB_BUILD/ulib/bin/rdmatensor
listed=$LAB_BUILD/demo/model.safetensors

# What the header has, as `ls -j` tells it, without the names that serve adds of its own
header_of() {
	local bytes
	bytes=$(od -An -tu8 -N8 "$1")
	dd if="$1" bs=1 skip=8 count=$((bytes)) status=none |
		jq -Mc 'del(.__metadata__) | to_entries |
			map({name: .key, shape: .value.shape,
			     bytes: (.value.data_offsets[1] - .value.data_offsets[0])}) | sort_by(.name)'
}

# list_is FILTER WANTED [ARGUMENT]...: what jq makes of `ls -j`
list_is() {
	local got
	got=$("$lister" ls -j "$LAB_IP:7030" "${@:3}" | jq -Mc "$1")
	[[ $got == "$2" ]] && return
	echo "ls ${*:3} | jq '$1' is ${got:0:500}, expected ${2:0:500}"
	return 1
}

# list_fails TEXT ARGUMENT...
list_fails() {
	"$lister" ls "${@:2}" >/tmp/ls.out 2>/tmp/ls.err && { cat /tmp/ls.out; return 1; }
	grep -q "$1" /tmp/ls.err || { cat /tmp/ls.err; return 1; }
}

list_serve() {
	"$lister" serve "$listed" --listen "$LAB_IP:${port:-7030}" "$@" >/tmp/serve 2>&1 &
	lister_of=$!
	until_true grep -q serving /tmp/serve
}

list_end() {
	kill $lister_of
	wait $lister_of
}

# It begins before its peer does; what it makes of that is looked at below
"$lister" ls -j --wait 600 --timeout 3 "$LAB_IP:7031" >/tmp/ls.late 2>&1 &
late=$! late_since=$SECONDS

list_serve --step 3 --steps 2
own='map(select(.name | startswith("rdmatensor.") | not))'
check "ls has all tensors of a model, once for each step" list_is \
	"$own | map({name, shape, bytes}) | unique | sort_by(.name)" "$(header_of "$listed")"
check "ls tells steps, and uses without an end" list_is \
	"$own | group_by(.name) | map([.[].step], [.[].uses]) | unique | flatten" '[0,0,3,4]'
first=$(header_of "$listed" | jq -r '.[7].name')
check "ls of a prefix" list_is 'map(.name) | unique' \
	"$(header_of "$listed" | jq -Mc --arg at "${first:0:9}" 'map(.name | select(startswith($at)))')" "${first:0:9}"
check "ls of a prefix that none has" list_is . '[]' "no such name"
check "ls of patterns" list_is 'map(.name) | unique' \
	"$(header_of "$listed" | jq -Mc --arg at "${first: -4}" 'map(.name | select(endswith($at)))')" \
	--filter "*${first: -4}" --filter 'no such*'
list_lines() {
	"$lister" ls "$LAB_IP:7030" >/tmp/ls.out || return 1
	head -n 1 /tmp/ls.out | grep -q "^DTYPE *SHAPE *BYTES *STEP *USES NAME$" || { head -3 /tmp/ls.out; return 1; }
	(($(grep -c ' 3     - [^ ]*$' /tmp/ls.out) == $("$lister" ls -j "$LAB_IP:7030" | jq 'map(select(.step == 3)) | length'))) ||
		{ head -5 /tmp/ls.out; return 1; }
}
check "ls prints a line for each" list_lines
check "ls of two peers" list_fails "no more than one PREFIX" "$LAB_IP:7030" a b
check "ls of a prefix that is too long" list_fails "no name is longer than 512" "$LAB_IP:7030" \
	"$(printf %600s)"
# Each dump, as this kernel takes it
shows_all() {
	local what
	for what in contexts channels pools requests tensors tables domains; do
		"$lister" show $what -j | jq -e 'type == "array"' >/dev/null || { echo "show $what"; return 1; }
	done
	"$lister" show tensors -j | jq -e --argjson nr "$("$lister" ls -j "$LAB_IP:7030" | jq length)" \
		'length == $nr' >/dev/null
}
check "show has what ls has, and all else that is shown" shows_all
list_end
check "ls of nobody" list_fails "start the peer" --wait 0 "$LAB_IP:7030"
list_serve --param list_mode=2
check "ls of who does not tell" list_fails "list tensors of $LAB_IP:7030: .*list_mode is 2" "$LAB_IP:7030"
list_end

# --timeout is from when there is a channel
list_is_late() {
	until ((SECONDS > late_since + 4)); do
		sleep 0.5
	done
	port=7031 list_serve
	wait $late || { cat /tmp/ls.late; return 1; }
	# Who listens already may not have published all yet: it is a part of what is there then
	until_true eval '"$lister" ls -j "$LAB_IP:7031" >/tmp/ls.whole && jq -e "length > 8" /tmp/ls.whole' &&
		jq -e --slurpfile whole /tmp/ls.whole 'type == "array" and
			map(.name) - ($whole[0] | map(.name)) == []' /tmp/ls.late >/dev/null ||
		{ cat /tmp/ls.late; return 1; }
}
check "ls of a peer that comes up later than --timeout" list_is_late
list_end
