#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# keeping.sh: `serve --keep` and `domain`, as root in a guest with one node: a server that is
# killed while others fetch, the next one, and who is refused.
set -u
. tests/lab/module.sh
tool=$LAB_BUILD/ulib/bin/rdmatensor
model=$LAB_BUILD/demo/model.safetensors
socket=/tmp/model.sock

# serves OUTPUT [OPTION]...: until it is ready; $server is it
serves() {
	local output=$1
	shift
	"$tool" serve -j "$@" --listen "$LAB_IP:7000" --worker keep >"$output" 2>/tmp/err &
	server=$!
	until_true grep -q ready "$output" || { cat /tmp/err; return 1; }
}

killed() {
	kill -KILL $server
	wait $server 2>/dev/null
	return 0
}

fetched() {
	rm -f /tmp/got
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/got && cmp /tmp/got "$model"
}

# shows FILTER WANTED: what jq makes of `domain show -j`
shows() {
	local got
	got=$("$tool" domain show -j "$socket" | jq -Mc "$1")
	[[ $got == "$2" ]] && return
	echo "domain show | jq '$1' is $got, expected $2"
	return 1
}

load
check "nobody keeps anything" refused "nobody keeps a domain there" "$tool" domain show "$socket"
check "nor can it be ended" refused "nobody keeps a domain there" "$tool" domain end "$socket"

check "a server that leaves its model" serves /tmp/first --keep "$socket" "$model"
check "has loaded it" eval '[[ $(jq -s ".[0].taken_up" /tmp/first) == false ]]'
check "the domain has one context and one pool" shows '[.contexts, .pools, .device_gone]' '[1,1,false]'
check "and its socket is its owner's" eval '[[ $(stat -c %a "$socket") == 600 ]]'
check "it is fetched" fetched
# Neither the model nor anything else of its parent: its socket, the domain, and /dev/null
check "the keeper has nothing else open" eval '
	ls -l /proc/$(pgrep rdmatensor-keep)/fd | sed -n "s/.* -> //p" | sort >/tmp/fds
	cat /tmp/fds; ! grep -Evx "/dev/null|socket:.*|anon_inode:.rdmatensor-domain." /tmp/fds &&
		[[ $(wc -l </tmp/fds) == 6 ]]'
check "nor is it for others" eval '
	chmod 777 "$socket" && ! setpriv --reuid 1234 --regid 1234 --clear-groups \
		"$tool" domain show "$socket" >/tmp/told 2>&1; cat /tmp/told
	chmod 600 "$socket"; shows .contexts 1'

# Fetches go on, and most are cut: a whole file is the model
while :; do
	rm -f /tmp/loop
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/loop --wait 0 >/dev/null 2>&1 &&
		{ cmp /tmp/loop "$model" || echo differs >/tmp/differs; }
done &
fetcher=$!
check "servers that are killed while others fetch" eval '
	for round in 1 2 3 4 5; do
		killed && serves /tmp/next --keep "$socket" "$model" &&
			[[ $(jq -s ".[0].taken_up" /tmp/next) == true ]] || break
	done
	((round == 5))'
kill $fetcher
wait $fetcher 2>/dev/null
until_true eval '! pgrep -x rdmatensor -f "fetch" >/dev/null'
check "and whoever got a file got the model" test ! -e /tmp/differs
check "it is fetched from the last one" fetched

check "a server that ends leaves it, too" eval 'kill $server && wait $server && shows .contexts 0'
check "which is said to a reader" eval '"$tool" domain show "$socket" | tee /tmp/shown |
	grep -q "^TENSORS *$(($(jq -s ".[0].tensors" /tmp/first) + 1))$" && grep -qF "$model" /tmp/shown'

# listed WHAT JQ EXPECTED: what root sees of it
listed() {
	local got
	got=$("$tool" show "$1" -j | jq -c "$2")
	[[ $got == "$3" ]] || { echo "show $1: $got, expected $3"; "$tool" show "$1" -j; return 1; }
}
check "root sees the domain, which nobody has joined" listed domains \
	'map([.contexts, .pools, .lasting, .mr_mode, .device, has("context")])' \
	'[[0,1,'$(($(jq -s '.[0].tensors' /tmp/first) + 1))',"pool","'"$LAB_RDMA_DEV"'",false]]'
check "and its pool" listed pools 'map([.domain > 0, .pool, .bytes > 0, .peers, has("context")])' \
	'[[true,1,true,"none",false]]'
check "of which it has all bytes" listed domains 'map(.bytes) | add' \
	"$("$tool" show pools -j | jq 'map(.bytes) | add')"
check "but none of a context" eval '! "$tool" show domains 1 2>/tmp/told && grep -q "show all of them" /tmp/told'
check "with who made it" listed domains 'map(.worker)' "$(jq -sc 'map(select(.worker) | .worker)' /tmp/first)"

cp "$model" /tmp/other.safetensors
check "another file is refused" refused "end it with \`rdmatensor domain end $socket\`" \
	"$tool" serve --keep "$socket" /tmp/other.safetensors --listen "$LAB_IP:7000"
check "so are other steps" refused "end it with \`rdmatensor domain end $socket\`" \
	"$tool" serve --keep "$socket" "$model" --steps 2 --listen "$LAB_IP:7000"
check "a path that is too long" refused "at most 99 bytes long" \
	"$tool" serve --keep "/tmp/$(printf '%0120d' 0)" "$model" --listen "$LAB_IP:7000"
check "what is no socket" refused "/dev/null: it is no socket" \
	"$tool" serve --keep /dev/null "$model" --listen "$LAB_IP:7000"

# Both serve from the same memory
two_servers() {
	local second status
	serves /tmp/one --keep "$socket" "$model" || return 1
	"$tool" serve -j --keep "$socket" "$model" --listen "$LAB_IP:7001" >/tmp/two 2>/tmp/err &
	second=$!
	until_true grep -q ready /tmp/two && shows '[.contexts, .pools]' '[2,1]' &&
		listed domains 'map([.contexts, .pools])' '[[2,1]]' &&
		listed pools '[length, (map([.domain, .pool]) | unique | length)]' '[2,1]' &&
		listed contexts 'map(.domain) | unique | length' 1 &&
		"$tool" fetch "$LAB_IP:7001" --all -o /tmp/got && cmp /tmp/got "$model"
	status=$?
	kill $second
	wait $second
	return $status
}
check "two servers at the same time" two_servers

# Of two that load at once one is told what to do, and does it
begin_at_once() {
	local early late path=/tmp/race.sock
	"$tool" serve -j --keep "$path" "$model" --listen "$LAB_IP:7002" >/tmp/early 2>/tmp/early.err &
	early=$!
	"$tool" serve -j --keep "$path" "$model" --listen "$LAB_IP:7003" >/tmp/late 2>/tmp/late.err &
	late=$!
	until_true grep -qs ready /tmp/early /tmp/late || return 1
	until_true eval 'grep -qs ready /tmp/early && grep -qs ready /tmp/late ||
		! kill -0 $early || ! kill -0 $late' || return 1
	kill $early $late 2>/dev/null
	wait $early $late
	cat /tmp/early.err /tmp/late.err
	! grep -h error /tmp/early.err /tmp/late.err | grep -v "start this one again" || return 1
	"$tool" serve -j --keep "$path" "$model" --listen "$LAB_IP:7003" >/tmp/late 2>/tmp/late.err &
	late=$!
	until_true grep -q '"taken_up": *true' /tmp/late || { cat /tmp/late.err; return 1; }
	kill $late
	wait $late
	[[ $(pgrep -xc rdmatensor-keep) == 2 ]] && "$tool" domain end "$path"
}
check "two servers that begin at the same time" begin_at_once
check "a folder that is not there" refused "make its folder" \
	"$tool" serve --keep /tmp/nowhere/socket "$model" --listen "$LAB_IP:7001"

check "its end" "$tool" domain end "$socket"
check "leaves no socket" test ! -e "$socket"
check "the domain stays as long as the server" listed domains 'map(.contexts)' '[1]'
check "and the server that is still there serves" fetched
kill $server
wait $server
check "and not longer" listed domains . '[]'

# Nothing is kept of a server that is killed before it has published all
"$tool" serve --keep "$socket" "$model" --steps 100000 --listen "$LAB_IP:7000" >/dev/null 2>&1 &
server=$!
until_true eval '(($("$tool" show contexts -j | jq ".[0].counters.published // 0") > 1000))'
killed
check "a server that was killed before it was ready leaves nothing" eval '
	until_true eval "! pgrep rdmatensor-keep" && test ! -e "$socket"'

# A keeper that was killed leaves its socket, which the next one replaces
check "a keeper that was killed" eval 'serves /tmp/three --keep "$socket" "$model" &&
	pkill -KILL rdmatensor-keep && until_true refused "nobody keeps" "$tool" domain show "$socket" &&
	test -S "$socket" && killed && serves /tmp/four --keep "$socket" "$model" &&
	[[ $(jq -s ".[0].taken_up" /tmp/four) == false ]] && fetched'

# A folder of three shards and an index, made of what is served: indexed FOLDER
indexed() {
	local file bytes
	for file in "$1"/*.safetensors; do
		bytes=$(od -An -tu8 -N8 "$file")
		tail -c +9 "$file" | head -c "$((bytes))" |
			jq --arg file "${file##*/}" 'del(.__metadata__) | map_values($file)'
	done | jq -s '{metadata: {total_size: 0}, weight_map: add}' >"$1/model.safetensors.index.json"
}
mkdir /tmp/shards /tmp/again /tmp/part
check "parts of a model, by their names" eval '
	"$tool" fetch "$LAB_IP:7000" --all --filter "means.[0-2]*" -o /tmp/shards/a.safetensors &&
	"$tool" fetch "$LAB_IP:7000" --all --filter "means.[!0-2]*" -o /tmp/shards/b.safetensors &&
	"$tool" fetch "$LAB_IP:7000" --all --filter "[!m]*" --filter "mi*" -o /tmp/shards/c.safetensors &&
	indexed /tmp/shards && (($(jq ".weight_map | length" /tmp/shards/*.json) == 256))'
# What is there of another model: its index would have the say
mkdir /tmp/former
echo "{}" >/tmp/former/model.safetensors.index.json
check "one file into a folder with an index" eval '
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/former/ &&
	test ! -e /tmp/former/model.safetensors.index.json && cmp /tmp/former/model.safetensors "$model"'
ln -sf /tmp/elsewhere /tmp/former/model.safetensors
echo mine >/tmp/elsewhere
check "a link that leads out of it is refused" refused "no regular file" \
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/former/
check "and what it leads to stays" eval '[[ $(cat /tmp/elsewhere) == mine ]]'
kill $server
wait $server
"$tool" domain end "$socket"

check "a folder of shards" eval 'serves /tmp/five --keep "$socket" /tmp/shards &&
	[[ $(jq -cs ".[0] | [.files, .tensors]" /tmp/five) == "[3,256]" ]]'
check "is fetched file by file" eval '
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/again/ && diff -r /tmp/shards /tmp/again'
# Of all of them as one file, those of one shard make that shard again
check "and as one file" eval '
	"$tool" fetch "$LAB_IP:7000" --all --filter "means.[!0-2]*" -o /tmp/got &&
	cmp /tmp/got /tmp/shards/b.safetensors'
check "and is taken up again" eval '
	killed && serves /tmp/six --keep "$socket" /tmp/shards &&
	[[ $(jq -s ".[0].taken_up" /tmp/six) == true ]]'
check "but not by a server of some of it" refused "of which the file, the time of its last change, the steps or --filter are others" \
	"$tool" serve --keep "$socket" --filter "means.*" /tmp/shards --listen "$LAB_IP:7001"
touch /tmp/shards/b.safetensors
check "nor of other files" refused "of which the file, the time of its last change, the steps or --filter are others" \
	"$tool" serve --keep "$socket" /tmp/shards --listen "$LAB_IP:7001"
killed
"$tool" domain end "$socket"
# Two peers, each with some of the shards
serves_some() {
	local port=$1 output=$2
	shift 2
	"$tool" serve -j --steps 16 "$@" /tmp/shards --listen "$LAB_IP:$port" >"$output" 2>/tmp/err &
	until_true grep -q ready "$output" || { cat /tmp/err; return 1; }
}
two_halves() {
	serves_some 7000 /tmp/half --filter "means.*" || return 1
	server=$!
	serves_some 7001 /tmp/other-half --filter "[!m]*" --filter "mi*" --filter "means.[!0-2]*" || return 1
	other=$!
}
check "two peers with some of the shards each" two_halves
one_with_all() { serves_some 7002 /tmp/all && whole=$!; }
check "one with all" one_with_all
check "the two make the same file" eval '
	"$tool" fetch "$LAB_IP:7000,$LAB_IP:7001" --all -j -o /tmp/got >/tmp/united &&
	"$tool" fetch "$LAB_IP:7002" --all -o /tmp/want && cmp /tmp/got /tmp/want &&
	jq -e "(.peers | map(.tensors) | add) == 256 and (.peers | map(.tensors > 0) | all)" /tmp/united'
check "but not a folder, whose files no peer knows" refused "no peer has all tensors" \
	"$tool" fetch "$LAB_IP:7000,$LAB_IP:7001" --all -o /tmp/part/
check "unless one more has all" eval 'rm -rf /tmp/again/* &&
	"$tool" fetch "$LAB_IP:7000,$LAB_IP:7001,$LAB_IP:7002" --all -o /tmp/again/ && diff -r /tmp/shards /tmp/again'

# fetch_cut PEERS COMMAND...: all steps of them, and when some are there, the command
served() { "$tool" show contexts -j | jq 'map(.counters.served // 0) | add'; }
served_some() { (($(served) > $1 + 600)); }
fetch_cut() {
	local fetch status before peers=$1
	shift
	before=$(served)
	rm -rf /tmp/again/*
	"$tool" fetch "$peers" --all --steps 16 -q 4 --timeout 8 -o /tmp/again/ >/tmp/cut 2>&1 &
	fetch=$!
	until_true served_some "$before"
	"$@"
	wait $fetch
	status=$?
	cat /tmp/cut
	((status == 0)) && grep -q "connecting again" /tmp/cut && diff -r /tmp/shards /tmp/again
}
whole_killed() {
	kill -KILL $whole
	wait $whole 2>/dev/null
	one_with_all
}
check "one of two is killed: the other sends the rest" fetch_cut "$LAB_IP:7000,$LAB_IP:7002" killed
check "the only one is killed, and started again" fetch_cut "$LAB_IP:7002" whole_killed
killed_for_another() {
	kill -KILL $whole
	wait $whole 2>/dev/null
	serves_some 7002 /tmp/all --filter "means.*" && whole=$!
}
another_model() {
	! fetch_cut "$LAB_IP:7002" killed_for_another &&
		grep -q "then: it was started anew, and serves another model now" /tmp/cut
}
check "another model in its place is not waited for" another_model
# The fetch stands still meanwhile, or the other peer could have sent all by then
killed_beside_another() {
	kill -STOP $fetch
	killed_for_another
	kill -CONT $fetch
}
check "nor mixed with what another peer sends" eval '
	kill -KILL $whole; wait $whole 2>/dev/null
	one_with_all && serves_some 7000 /tmp/half && server=$! &&
	fetch_cut "$LAB_IP:7002,$LAB_IP:7000" killed_beside_another &&
	grep -q "$LAB_IP:7002 is given up: it was started anew" /tmp/cut'
kill $server $whole
wait $server $whole 2>/dev/null
check "one with all again" one_with_all
# Nobody has what is missing, and it is said for how long who was asked
nobody_has_it() {
	! fetch_cut "$LAB_IP:7001,$LAB_IP:7002" eval 'kill -KILL $whole; wait $whole 2>/dev/null' &&
		grep -qE "error: fetch (tensor|[0-9]+ tensors,) \"means[.].*from $LAB_IP:7002: the channel has gone down: .*nobody listens" /tmp/cut
}
check "what nobody else has does not come" nobody_has_it
kill $other
wait $other
check "the files' own pages, and some tensors of them" eval '
	serves /tmp/seven --memory file --filter "means.*" /tmp/shards &&
	"$tool" fetch "$LAB_IP:7000" --all -o /tmp/part/ && ls /tmp/part &&
	[[ $(ls /tmp/part | wc -l) == 3 ]] && cmp /tmp/part/b.safetensors /tmp/shards/b.safetensors'
kill $server
wait $server
rm /tmp/shards/b.safetensors
check "a shard that is not there" refused "b.safetensors: it is not there" \
	"$tool" serve /tmp/shards --listen "$LAB_IP:7000"
unload
exit "$failed"
