# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# `rdmatensor metrics` against what `show` tells of the same contexts, and against what this script
# does meanwhile. Sourced by netlink.sh, while perf-server and a stopped perf-client are there.

# sum_of FAMILY WORKER FILE: over all series of the family that are that worker's
sum_of() {
	awk -v at="$1{" -v who="worker=\"$2\"" \
		'index($0, at) == 1 && index($0, who) { sum += $NF } END { printf "%d\n", sum }' "$3"
}

# scraped FILE [ARGUMENT...]: it, and it is whole
scraped() {
	"$tool" metrics --file "$1" "${@:2}" && grep -q '^rdmatensor_scrape_incomplete 0$' "$1"
}

# Nobody moves: each counter, each bucket and each number is what `show` has. But probes, which go on
# between the two
as_shown() {
	local what
	until_true scraped /tmp/it.prom || return 1
	for what in contexts channels; do
		"$tool" show $what -j | jq -r --arg kind "${what%s}" '.[] | .worker as $worker | .counters |
			to_entries[] | "rdmatensor_\($kind)_\(.key)_total \($worker) \(.value)"'
		"$tool" show $what -j | jq -r --arg kind "${what%s}" '.[] |
			"rdmatensor_\($kind)_fetch_latency_seconds_count \(.worker) \([.latency_us[]] | add // 0)",
			"rdmatensor_\($kind)_fetch_failures_total \(.worker) \([.errors[]] | add // 0)"'
	done >/tmp/shown
	"$tool" show contexts -j | jq -r '.[] | "rdmatensor_context_channels \(.worker) \(.channels)"' >>/tmp/shown
	(($(wc -l </tmp/shown) > 200)) || return 1
	# One pass over both: a process for each number takes minutes on an emulated processor
	awk -v shown=/tmp/shown '
		/^# TYPE / { typed[$4 == "histogram" ? $3 "_count" : $3] = 1; next }
		/^#/ { next }
		match($0, /worker="[^"]*"/) {
			worker = substr($0, RSTART + 8, RLENGTH - 9)
			sum[substr($0, 1, index($0, "{") - 1) " " worker] += $NF
		}
		END {
			while ((getline <shown) > 0)
				want[$1 " " $2] += $3
			for (at in want) {
				split(at, part)
				if (!(part[1] in typed)) {
					# Of channels only what has to do with a peer
					if (part[1] ~ /^rdmatensor_channel_/ && !want[at])
						continue
					print "no " part[1]
					exit 1
				}
				if (sum[at] + 0 != want[at] &&
				    !(part[1] ~ /_tx_probes_total$/ && sum[at] + 0 <= want[at])) {
					printf "%s is %d, not %d\n", at, sum[at], want[at]
					exit 1
				}
			}
		}' /tmp/it.prom
}
check "metrics are what show has, counter by counter" until_true as_shown

# Differences between two scrapes, as a rate is made of them
as_done() {
	local fetched bytes
	until_true scraped /tmp/before.prom || return 1
	"$tool" fetch "$LAB_IP:7000" --all --steps 2 --worker metered -j -o /tmp/got.safetensors >/tmp/metered || return 1
	until_true is 'map(select(.worker == "metered")) | length' 0 contexts
	until_true scraped /tmp/after.prom || return 1
	fetched=$(($(sum_of rdmatensor_context_served_total server /tmp/after.prom) -
		$(sum_of rdmatensor_context_served_total server /tmp/before.prom)))
	bytes=$(($(sum_of rdmatensor_context_served_bytes_total server /tmp/after.prom) -
		$(sum_of rdmatensor_context_served_bytes_total server /tmp/before.prom)))
	# As above: each tensor of both steps, and the index once
	echo "served $fetched, $bytes bytes, expected $((tensors - 1))"
	((fetched == tensors - 1)) && ((bytes >= 2 * $(jq '[.steps[].bytes] | max' /tmp/metered))) &&
		[[ $(sum_of rdmatensor_context_channels_up_total server /tmp/after.prom) == \
			$(($(sum_of rdmatensor_context_channels_up_total server /tmp/before.prom) + 1)) ]]
}
check "what is served between two scrapes is what was fetched" as_done

# Series of channels that are gone are not there, and those of their context keep what they did
gone() {
	! grep -q 'peer="metered"' /tmp/after.prom && grep -q 'worker="server"' /tmp/after.prom
}
check "a channel's series end with it" gone

bounded() {
	scraped /tmp/few.prom --max-series 100 && (($(grep -vc '^#' /tmp/few.prom) <= 105)) &&
		(($(sed -n 's/^rdmatensor_scrape_series_left_out //p' /tmp/few.prom) ==
		  $(grep -vc '^#' /tmp/after.prom) - $(grep -vc '^#' /tmp/few.prom)))
}
check "no more series than are wanted, and how many are missing" bounded

check "promtool has nothing to say" eval '
	"$LAB_BUILD/promtool" check metrics </tmp/after.prom >/tmp/told 2>&1; cat /tmp/told; [[ ! -s /tmp/told ]]'

# over_http PATH [HEADER]: what is answered
over_http() {
	exec 8<>"/dev/tcp/$LAB_IP/$port" || return 1
	printf 'GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s\r\n' "$1" "${2:-}" >&8
	cat <&8
	exec 8>&-
}
listens() {
	local listener port status
	"$tool" metrics --listen "$LAB_IP:0" >/tmp/listens 2>&1 &
	listener=$!
	until_true grep -q "metrics at http" /tmp/listens || return 1
	port=$(sed -n 's|.*http://[^:]*:\([0-9]*\),.*|\1|p' /tmp/listens)
	over_http /metrics >/tmp/answer
	over_http /metrics $'Accept: application/openmetrics-text; version=1.0.0\r\n' >/tmp/open
	over_http / >/tmp/root
	kill $listener
	wait $listener
	status=$?
	grep -q "^HTTP/1.1 200" /tmp/answer && grep -q "^# EOF" /tmp/open && grep -q "^HTTP/1.1 404" /tmp/root &&
		[[ $(sum_of rdmatensor_context_served_total server /tmp/answer) == \
			$(sum_of rdmatensor_context_served_total server /tmp/after.prom) ]] && ((status == 0))
}
check "metrics over HTTP" listens
check "metrics are not for everybody" refused metrics
check "nor those of another network namespace" eval \
	'unshare -n "$tool" metrics | grep -q "^rdmatensor_scrape_series 0$"'
