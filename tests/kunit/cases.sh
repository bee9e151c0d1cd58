# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Sourced by what reads KUnit's results.

# kunit_cases SUITE: of the KTAP on standard input one line for each case, "ok - NAME" or
# "not ok - NAME", and one for each that was skipped, or of whose parameters one was
kunit_cases() {
	sed -nE \
		-e "s/^    ((not )?ok) [0-9]+ (- )?([^ ]+)(.*)\$/\\1 - kunit $1.\\4\\5/p" \
		-e "s/^        ok [0-9]+ (- )?(.*# SKIP.*)\$/ok - kunit $1, a parameter: \\2/p"
}
