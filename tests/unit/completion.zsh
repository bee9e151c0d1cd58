#!/usr/bin/env zsh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# completion.zsh TOOL COMPLETION: what zsh completes of a command line of the tool, asked of an
# interactive zsh on a terminal of its own. TAP.
zmodload zsh/zpty || exit 1
: ${2:?usage: completion.zsh TOOL COMPLETION}
dir=$(mktemp -d)
trap 'zpty -d shell 2>/dev/null; rm -rf $dir' EXIT
ln -s $1 $dir/rdmatensor
number=0
failed=0

# What is there: each match is told in place of being inserted
cat >$dir/.zshrc <<END
PS1= PS2= PROMPT_SP= PROMPT_CR=
path=($dir \$path)
fpath=(${2:A:h} \$fpath)
autoload -Uz compinit && compinit -u -d $dir/dump
compadd() {
	local -a found
	builtin compadd -O found "\$@"
	((! \$#found)) || print -rl -- "match "\$^found >>$dir/matches
	builtin compadd "\$@"
}
tell() {
	: >$dir/matches
	_main_complete
	compstate[insert]= compstate[list]=
	print told >$dir/events
}
zle -C tell complete-word tell
bindkey '^I' tell
# From here on the line is edited, and its keys are the editor's
zle-line-init() { print ready >$dir/events }
zle -N zle-line-init
END

# Not by the terminal: while something is printed there, its keys are not the editor's
mkfifo $dir/events
exec {events}<>$dir/events

# await EVENT, and take what was shown meanwhile, so that there is room for more
await() {
	local event shown
	read -t 60 -u $events event
	while zpty -r -t shell shown; do :; done
	[[ $event != $1 ]] || return 0
	echo "# zsh says \"$event\" and not $1"
	exit 1
}

zpty shell "ZDOTDIR=$dir TERM=dumb zsh -i"
await ready

# completes "WORDS... " WANTED...: the last of WORDS, which may be empty, to these
completes() {
	local line=$1 word
	local -a got
	shift
	((++number))
	# The line before is gone
	zpty -w -n shell $'\x15'$line$'\t'
	await told
	got=(${${(M)${(f)"$(<$dir/matches)"}:#match *}#match })
	for word; do
		((! $got[(Ie)$word])) || continue
		echo "# \"$line\" gives: $got"
		echo "not ok $number - zsh: \"$line\" is completed to $word"
		failed=1
		return
	done
	if ((!$# && $#got)); then
		echo "not ok $number - zsh: \"$line\" gives: $got"
		failed=1
		return
	fi
	echo "ok $number - zsh: \"$line\""
}

: >$dir/some.safetensors
: >$dir/other.txt

completes "rdmatensor " serve fetch perf gather info doctor show top set monitor help --help --version
completes "rdmatensor help fe" fetch
completes "rdmatensor sh" show
completes "rdmatensor nosuch"
completes "rdmatensor perf --" --server --lanes --json --device
completes "rdmatensor fetch --al" --all
completes "rdmatensor fetch -" -a -o
completes "rdmatensor serve $dir/so" some.safetensors
completes "rdmatensor serve --keep $dir/ot" other.txt
completes "rdmatensor show " contexts channels domains pools requests tensors tables params
completes "rdmatensor show params m" mtu msg_slots msg_slot_bytes max_channels max_pools
completes "rdmatensor show params -" --json --verbose --help
completes "rdmatensor domain " show end
completes "rdmatensor set la" lanes
completes "rdmatensor set d" device
completes "rdmatensor set lanes " 1 8
completes "rdmatensor set mtu " 256 4096 auto
exit $failed
