// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * doctor: goes from the module to a fetch from a peer, a line for each thing that has to
 * be right, and says what to do about what is not.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"
#include "host.h"
#include "peer.h"
#include "say.h"
#include "start.h"
#include "tool/cmd/commands.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/options.h"

static void help(void)
{
	printf("Usage: rdmatensor doctor [OPTION]... [PEER]\n"
	       "Look at all that has to be right for tensors to go over RDMA: module, device file,\n"
	       "memory limit, RDMA devices, their ports and GIDs, MTU, a fetch over the device from\n"
	       "itself, and with a PEER the route, a channel, and fetches of a short and of a long\n"
	       "tensor from it, if it runs `rdmatensor perf --server`; from a `serve`, of its\n"
	       "index. Each line is OK, WARN or FAIL, with what to do about it. Exit status 0: all\n"
	       "are OK.\n"
	       "%s", common_help);
}

static void visit(struct doctor *doctor)
{
	bool loaded = doctor_module(doctor);
	bool devices;

	if (loaded)
		doctor_node(doctor);
	doctor_memlock(doctor);
	devices = doctor_devices(doctor);
	if (!loaded || !devices || doctor->worst == VERDICT_FAIL)
		return;
	if (!doctor_start(doctor))
		return;
	doctor_itself(doctor);
	if (doctor->peer)
		doctor_try_peer(doctor);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_LONG,
		{ 0 }
	};
	struct doctor doctor = { .worst = VERDICT_OK };
	int opt, err = EXIT_OK;

	common_init(&doctor.common);
	while (!err && (opt = getopt_long(argc, argv, COMMON_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			help();
			return EXIT_OK;
		}
		err = common_option(&doctor.common, opt, optarg);
	}
	if (!err)
		err = common_environment(&doctor.common);
	if (err)
		return err;
	if (argc - optind > 1)
		return misused("one PEER is enough");
	if (optind < argc)
		doctor.peer = argv[optind];
	if (doctor.common.json)
		doctor.checks = json_object_new_array();
	visit(&doctor);
	rdmatensor_close(doctor.rt);
	return doctor_report(&doctor);
}
