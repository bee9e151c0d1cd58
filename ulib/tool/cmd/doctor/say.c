// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The lines of doctor, as text or as JSON.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "say.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/text.h"

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

int doctor_report(struct doctor *doctor)
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
		printf("\nIt works, but look at each WARN.\n");
	} else {
		printf("\n%s before each FAIL is fixed.\n", doctor->here_is_well ?
		       "This machine is well, but tensors cannot come from the peer" :
		       "Tensors cannot go over RDMA");
	}
	return doctor->worst == VERDICT_OK ? EXIT_OK : EXIT_FAILED;
}
