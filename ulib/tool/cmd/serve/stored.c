// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * With --keep systemd the domain is in the service manager's store, where a descriptor has a name
 * and nothing else: the name has a sum of the model's label. What is there of another model is of
 * no use to this service, whose file has changed: it is closed before this model is read, so that
 * memory is needed for one of them only.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "tool/common/manager.h"
#include "tool/common/message.h"

#define PREFIX "rdmatensor-"

/* A whole one, which can be joined */
static bool is_of_use(const struct serve *serve, int domain)
{
	struct rdmatensor_domain_query query = { .size = sizeof(query) };

	return !rdmatensor_domain_query(domain, &query) &&
	       !(query.flags & RDMATENSOR_DOMAIN_DEVICE_GONE) &&
	       query.lasting == (uint64_t)serve->steps * serve_published(serve);
}

struct taking {
	struct serve *serve;
	int err;
};

static void take(void *arg, int fd, const char *name)
{
	struct taking *taking = arg;
	struct serve *serve = taking->serve;

	if (strncmp(name, PREFIX, strlen(PREFIX))) {
		/* Nothing of ours, such as a socket that the unit names */
		close(fd);
		return;
	}
	if (serve->domain < 0 && !strcmp(name, serve->stored) && is_of_use(serve, fd)) {
		serve->domain = fd;
		return;
	}
	if (strcmp(name, serve->stored))
		warned("systemd keeps another model, or other content, steps or patterns: that is freed, and %s is read",
		       serve->path);
	else
		warned("what systemd keeps of %s is not whole, or its device is gone: that is freed, and it is read anew",
		       serve->path);
	close(fd);
	taking->err = manager_drop(name) ?: taking->err;
}

int stored_take(struct serve *serve)
{
	struct taking taking = { .serve = serve };
	int err;

	snprintf(serve->stored, sizeof(serve->stored), PREFIX "%016" PRIx64,
		 serve_sum(SERVE_SUM_BEGIN, serve->label, strlen(serve->label)));
	err = manager_kept_each(take, &taking) ?: taking.err;
	if (!err && serve->domain >= 0)
		rdmatensor_start_domain(&serve->server.options.start, serve->domain);
	return err;
}

int stored_put(struct serve *serve)
{
	return manager_keep(serve->own, serve->stored);
}

int stored_drop(struct serve *serve)
{
	return manager_drop(serve->stored);
}
