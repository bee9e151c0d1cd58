// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * doctor: checks everything from the module to a fetch from a peer, and prints a line for
 * each check, with a remedy for what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"
#include "devices.h"
#include "host.h"
#include "peer.h"
#include "say.h"
#include "start.h"
#include "tool/cmd/commands.h"
#include "tool/common/context_options.h"
#include "tool/common/json.h"
#include "tool/common/message.h"

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

/* A cluster's node takes settings from the environment alone */
static bool has_settings(const struct context_options *options)
{
	const char *file = getenv("RDMATENSOR_DEVICE_PATH");
	struct rdmatensor_start plain;

	rdmatensor_start_init(&plain, NULL);
	return options->listen || options->wait_ns != WAIT_DEFAULT ||
	       (options->device_file && (!file || strcmp(options->device_file, file))) ||
	       rdmatensor_start_rest_from_env(&plain, NULL, 0) ||
	       memcmp(&plain, &options->start, sizeof(plain));
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = { .worst = VERDICT_OK };
	const char *cluster = NULL;
	uint64_t timeout_ns = 0;
	const struct option_place places[] = {
		{ .id = OPT_CLUSTER, .text = &cluster },
		{ .id = OPT_TIMEOUT, .ns = &timeout_ns },
	};
	int err;

	if (!context_options_parse(COMMAND_DOCTOR, &doctor.options, places, NR_PLACES(places), argc,
				   argv, &err))
		return err;
	if (cluster) {
		if (!*cluster)
			return misused("--cluster wants a file of hosts");
		if (optind < argc)
			return misused("either --cluster %s or a PEER", cluster);
		if (has_settings(&doctor.options))
			return misused("--cluster takes no other settings: give them by the environment, as RDMA_DEVICE, on all hosts");
		return doctor_cluster(cluster, timeout_ns, doctor.options.json);
	}
	if (argc - optind > 1)
		return misused("one PEER is enough");
	if (optind < argc)
		doctor.peer = argv[optind];
	if (doctor.options.json)
		doctor.checks = json_object_new_array();
	visit(&doctor);
	rdmatensor_close(doctor.rt);
	return doctor_report(&doctor);
}
