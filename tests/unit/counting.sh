#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# counting.sh: that cases are counted as what they are, skipped ones among them. TAP.
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
exit $failed
