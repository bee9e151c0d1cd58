// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * doctor: goes from the module to a fetch from a peer, a line for each thing that has to
 * be right, and says what to do about what is not.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "json.h"
#include "text.h"

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

static const char *const verdicts[] = {
	[VERDICT_OK] = "OK",
	[VERDICT_WARN] = "WARN",
	[VERDICT_FAIL] = "FAIL",
};

static const char *const verdict_colours[] = {
	[VERDICT_OK] = "\033[32m",
	[VERDICT_WARN] = "\033[33m",
	[VERDICT_FAIL] = "\033[1;31m",
};

void doctor_say(struct doctor *doctor, enum verdict verdict, const char *check,
		const char *remedy, const char *fmt, ...)
{
	bool colours = fd_has_colours(STDOUT_FILENO);
	struct json_object *one;
	char text[512];
	va_list args;

	if (verdict > doctor->worst)
		doctor->worst = verdict;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!doctor->checks) {
		printf("%s%-4s%s  %-7s  ", colours ? verdict_colours[verdict] : "",
		       verdicts[verdict], colours ? "\033[0m" : "", check);
		put_string(stdout, text);
		if (remedy) {
			printf("\n               -> ");
			put_string(stdout, remedy);
		}
		putchar('\n');
		fflush(stdout);
		return;
	}
	one = json_object_new_object();
	add_string(one, "check", check);
	add_string(one, "verdict", verdicts[verdict]);
	add_string(one, "text", text);
	if (remedy)
		add_string(one, "remedy", remedy);
	json_object_array_add(doctor->checks, one);
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

static int report(struct doctor *doctor)
{
	struct json_object *root;

	if (doctor->checks) {
		root = json_object_new_object();
		add_string(root, "verdict", verdicts[doctor->worst]);
		json_object_object_add(root, "checks", doctor->checks);
		print_json(root);
	} else if (doctor->worst == VERDICT_OK) {
		printf("\nAll is well%s.\n", doctor->peer ? "" :
		       " on this machine; rdmatensor doctor PEER tries another one");
	} else if (doctor->worst == VERDICT_WARN) {
		printf("\nIt works, but look at what is a WARN.\n");
	} else {
		printf("\n%s before what FAILs is mended.\n", doctor->here_is_well ?
		       "This machine is well, but tensors cannot come from the peer" :
		       "Tensors cannot go over RDMA");
	}
	return doctor->worst == VERDICT_OK ? EXIT_OK : EXIT_FAILED;
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
	return report(&doctor);
}
