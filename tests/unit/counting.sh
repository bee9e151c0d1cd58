#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# counting.sh: that cases are counted as what they are, skipped ones among them, and that
# tests/check says so. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lab/count.sh
. "$here/../lab/count.sh"
number=0
failed=0

# counts NAME "PASSED FAILED SKIPPED": what is on standard input
counts() {
	local ok bad skip log
	log=$(mktemp)
	cat >"$log"
	count_cases "$log"
	rm "$log"
	number=$((number + 1))
	if [[ "$ok $bad $skip" == "$2" ]]; then
		echo "ok $number - counted: $1"
	else
		echo "# $ok passed, $bad failed, $skip skipped; expected $2"
		echo "not ok $number - counted: $1"
		failed=1
	fi
}

counts "nothing" "0 0 0" </dev/null
counts "TAP of two nodes" "3 2 1" <<'END'
ok 1 - one
node0| ok 2 - two
not ok 3 - three
node1| not ok 4 - four # SKIP no
ok 5 - five # skip lower case
# ok 6 - a comment
ok 7 - seven
END
counts "a plan that is kept" "4 0 0" <<'END'
1..2
ok 1 - one
ok 1001 - by a script
ok 2 - two
node1| 1..1
node1| ok 1 - one
END
counts "a number that is told twice" "3 1 0" <<'END'
1..3
ok 1 - one
ok 2 - two
ok 2 - two again
END
counts "a first case that is told twice" "2 1 0" <<'END'
1..2
ok 1 - one
ok 1 - one again
END
counts "plans of several programs" "4 0 0" <<'END'
ok 1 - one
ok 2 - two
1..2
1..2
ok 1 - one
ok 2 - two
END
counts "a failure without a number" "1 1 0" <<'END'
1..1
ok 1 - one
not ok - the program
END
counts "plans that are not" "4 3 0" <<'END'
ok 1001 - by a script
1..3
ok 1 - one
1..1
ok 1 - one
node1| 1..2
node1| ok 1 - one
END
counts "cmocka's" "4 1 2" <<'END'
[==========] Running 7 test(s).
[       OK ] test_one
[  SKIPPED ] test_two
[  FAILED  ] test_three
[  PASSED  ] 4 test(s).
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] test_two
[  SKIPPED ] test_four
[  FAILED  ] 1 test(s), listed below:
END
counts "KUnit's, as its runner has them" "2 1 2" < <(
	# shellcheck source=tests/kunit/cases.sh
	. "$here/../kunit/cases.sh"
	kunit_cases suite <<'END' | awk '{ sub(/^ok/, "ok " NR); sub(/^not ok/, "not ok " NR); print }'
    # Subtest: suite
    1..4
    ok 1 one
    ok 2 two # SKIP not here
    not ok 3 three
        # Subtest: four
        ok 1 a
        ok 2 b # SKIP not here either
    ok 4 four
ok 1 suite
END
)

# tests/check itself, with one suite that is a word of TAP, and nothing to build
says_how_long_and_how_many() {
	local at lines
	at=$(mktemp -d)
	mkdir -p "$at"/{bin,tests/{lab,demo,fuzz},ulib/examples,build/demo}
	cp "$here/../check" "$at/tests/"
	cp "$here"/../lab/{lib,count}.sh "$at/tests/lab/"
	ln -s "$(type -P true)" "$at/bin/make"
	ln -s "$(type -P true)" "$at/tests/demo/model"
	ln -s "$(type -P true)" "$at/ulib/examples/debian-graph"
	ln -s "$(type -P true)" "$at/tests/lab/deps"
	ln -s "$(type -P true)" "$at/tests/lab/borrow"
	printf '%s\n' '#!/bin/sh' 'echo "ok 1 - a"; echo "not ok 2 - b"; echo "ok 3 - c # SKIP"; exit 1' \
		>"$at/tests/fuzz/wire.sh"
	chmod +x "$at/tests/fuzz/wire.sh"
	mapfile -t lines < <(cd "$at" && PATH=$at/bin:$PATH tests/check fuzz-wire 2>&1)
	rm -r "$at"
	number=$((number + 1))
	if [[ ${lines[0]} =~ ^check:\ 1\ suites,\ about\ [1-9][0-9]*\ min\ on\ [12]\ processors?$ &&
		${lines[-1]} == "1 passed, 1 failed, 1 skipped" ]]; then
		echo "ok $number - check: how long it will take first, and last how many have passed"
	else
		printf '# %s\n' "${lines[@]}"
		echo "not ok $number - check: ${lines[0]} ... ${lines[-1]}"
		failed=1
	fi
}
says_how_long_and_how_many
exit $failed
