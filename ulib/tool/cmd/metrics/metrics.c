// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * metrics: counters, histograms and numbers of all contexts and channels for a monitor: printed, as
 * a file that another exporter reads, or for those that ask over HTTP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exposition.h"
#include "listen.h"
#include "tool/cmd/commands.h"
#include "tool/common/files.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/outfile.h"

/* The module is asked first: the file keeps what it has if that fails */
static int write_file(const char *name, const char *text, size_t bytes)
{
	const struct piece piece = { .base = (void *)text, .bytes = bytes };
	struct outfile out;
	int err;

	err = outfile_open(&out, name);
	if (err)
		return err;
	err = file_write(out.fd, out.stream, &piece, 1, NULL);
	if (err)
		err = failed("write %s: %s", name, strerror(-err));
	else
		err = outfile_commit(&out);
	outfile_drop(&out);
	return err;
}

static int take_format(void *own, const char *arg)
{
	enum format *format = own;

	if (!strcmp(arg, "prometheus"))
		*format = FORMAT_PROMETHEUS;
	else if (!strcmp(arg, "openmetrics"))
		*format = FORMAT_OPENMETRICS;
	else
		return misused("--format %s is refused: give prometheus or openmetrics", arg);
	return EXIT_OK;
}

int cmd_metrics(int argc, char **argv)
{
	const char *file = NULL, *listen = NULL;
	enum format format = FORMAT_PROMETHEUS;
	int64_t most = 0;
	const struct option_place places[] = {
		{ .id = OPT_FILE, .text = &file },
		{ .id = OPT_LISTEN, .text = &listen },
		{ .id = OPT_FORMAT, .own = &format, .take = take_format },
		{ .id = OPT_MAX_SERIES, .number = &most },
	};
	char *text;
	size_t bytes;
	int err;

	if (!options_parse(COMMAND_METRICS, places, NR_PLACES(places), argc, argv, &err))
		return err;
	if (optind < argc)
		return misused("no argument is expected after the options");
	if (file && listen)
		return misused("--file and --listen are two ways to be read: give one of them");
	if (listen && format != FORMAT_PROMETHEUS)
		return misused("with --listen each reader asks for its --format");
	if (listen)
		return metrics_listen(listen, (uint64_t)most);
	err = exposition_make((uint64_t)most, format, &text, &bytes);
	if (!err && file)
		err = write_file(file, text, bytes);
	else if (!err)
		fwrite(text, 1, bytes, stdout);
	free(text);
	return err;
}
