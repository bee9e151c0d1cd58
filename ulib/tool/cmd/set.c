// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * set: a parameter of the module, in sysfs. A value that conflicts with another parameter is
 * set with a warning, because of two parameters that depend on each other one is set first.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/params.h>

#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/option_text.h"
#include "tool/common/params.h"

static int refused(const struct param *param, const char *text)
{
	char range[96];

	return misused("set %s %s is refused: give a number from %s", param->name, text,
		       param_range_text(param, range, sizeof(range)));
}

/* The kernel's rule, again: its message goes to the kernel log only */
static int check(const struct param *param, const char *text)
{
	uint64_t value;
	char *end;

	if (param->value == RDMATENSOR_PARAM_AUTO && !strcmp(text, "auto"))
		return EXIT_OK;
	/* The kernel would take a leading 0 for octal */
	if (*text == '0' && text[1] && text[1] != 'x' && text[1] != 'X')
		return misused("set %s %s is refused: give it without the leading 0, in decimal or, with 0x, in hexadecimal",
			       param->name, text);
	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || *text < '0' || *text > '9' || value < param->least ||
	    value > param->most || (param->power_of_two && value & (value - 1)))
		return refused(param, text);
	return EXIT_OK;
}

/* True: *@value is its number. False: it is auto, or cannot be read */
static bool number_of_param(const char *name, uint32_t *value)
{
	char text[64], *end;

	if (param_read(name, text, sizeof(text)))
		return false;
	*value = (uint32_t)strtoul(text, &end, 10);
	return *text && !*end;
}

/* START's rules on pairs of parameters */
static void note_others(const char *name)
{
	uint32_t depth, slots, batch;

	if (!number_of_param("msg_slots", &slots))
		return;
	if ((!strcmp(name, "queue_depth") || !strcmp(name, "msg_slots")) &&
	    number_of_param("queue_depth", &depth) && depth < 2 * slots + 8)
		warned("no context starts with queue_depth %" PRIu32 " and msg_slots %" PRIu32 ": set queue_depth to at least %" PRIu32 ", or msg_slots to less",
		     depth, slots, 2 * slots + 8);
	if ((!strcmp(name, "ack_batch") || !strcmp(name, "msg_slots")) &&
	    number_of_param("ack_batch", &batch) && batch > slots)
		warned("no context starts with ack_batch %" PRIu32 " and msg_slots %" PRIu32 ": set ack_batch to at most %" PRIu32 ", or to auto",
		     batch, slots, slots);
}

static int open_failed(const char *name, const char *path, int err)
{
	if (err == ENOENT && !access(params_dir, F_OK))
		return failed("set %s: the loaded module has no such parameter: install and load the one of this version",
			      name);
	return failed("set %s: %s: %s%s", name, path, strerror(err),
		      err == ENOENT ? ": load the module first: modprobe rdmatensor" :
		      (err == EACCES || err == EPERM) && geteuid() ? ": only root may set it" : "");
}

/* EXIT_OK, or EXIT_FAILED with a message */
static int write_param(const char *name, const char *value)
{
	char path[PATH_MAX];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", params_dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return open_failed(name, path, errno);
	if (dprintf(fd, "%s\n", value) < 0)
		err = errno;
	close(fd);
	return err ? failed("set %s %s: %s: the kernel log says more", name, value,
			    strerror(err)) : EXIT_OK;
}

int cmd_set(int argc, char **argv)
{
	const struct param *param;
	int err;

	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		option_help(COMMAND_SET, stdout);
		return EXIT_OK;
	}
	if (argc == 2 && strchr(argv[1], '='))
		return misused("give the NAME of a parameter and its VALUE, without =: set %.*s %s",
			       (int)strcspn(argv[1], "="), argv[1], strchr(argv[1], '=') + 1);
	if (argc != 3)
		return misused("give the NAME of a parameter and its VALUE");
	param = param_find(argv[1]);
	if (!param && strcmp(argv[1], "device"))
		return misused("there is no parameter \"%s\"; rdmatensor show params lists them",
			       argv[1]);
	err = param ? check(param, argv[2]) : EXIT_OK;
	if (!err)
		err = write_param(argv[1], argv[2]);
	if (err)
		return err;
	note_others(argv[1]);
	return EXIT_OK;
}
