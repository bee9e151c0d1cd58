// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * serve: publishes every tensor of a model, until a signal.
 *
 * So that peers can ask for all of them, the header of one file with all tensors is published as
 * well. Of a model with an index, that tensor's only dim tells the length of another one, which
 * has the index and the shards' headers; a peer that does not know of it does not look at it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "tool/cmd/commands.h"
#include "tool/common/context_options.h"
#include "tool/common/json.h"
#include "tool/common/manager.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/published.h"

/* Operations of one submit */
#define BATCH 256

/* The model is judged before anything else begins */
static int load(struct serve *serve)
{
	int err;

	manager_status("reading %s", serve->path);
	err = serve_open(serve);
	serve->begun_ns = rdmatensor_now_ns();
	if (!err)
		err = serve_open_domain(serve);
	if (!err)
		err = server_start(&serve->server);
	if (!err)
		err = serve_create_domain(serve);
	if (!err)
		err = serve->domain >= 0 ? serve_take_up(serve) : serve_load(serve);
	st_model_close_files(&serve->model);
	free(serve->pack);
	serve->pack = NULL;
	return err;
}

static const char *name_of(void *arg, uint64_t i, int64_t *step)
{
	const struct serve *serve = arg;
	uint64_t per_step = serve_published(serve), nr = serve->model.all->nr;

	*step = serve->first_step + (int64_t)(i / per_step);
	i %= per_step;
	if (i < nr)
		return serve->model.all->tensors[i].name;
	return i == nr ? INDEX_NAME : SHARDS_NAME;
}

static void prep(const struct serve *serve, struct rdmatensor_op *op, size_t i, int64_t step)
{
	const struct st_file *all = serve->model.all;
	const struct region *region = i < all->nr ? &serve->tensors[i] :
				      i == all->nr ? &serve->header : &serve->shards;

	if (i < all->nr)
		rdmatensor_prep_publish(op, all->tensors[i].name, step, region->pool,
					region->offset, region->bytes, all->tensors[i].data_type,
					all->tensors[i].ndims, all->tensors[i].dims, 0, 0);
	else if (i == all->nr)
		rdmatensor_prep_publish(op, INDEX_NAME, step, region->pool, region->offset,
					region->bytes, RDMATENSOR_DT_STRING, !!serve->dim,
					&serve->dim, 0, 0);
	else
		rdmatensor_prep_publish(op, SHARDS_NAME, step, region->pool, region->offset,
					region->bytes, RDMATENSOR_DT_STRING, 0, NULL, 0, 0);
}

static int publish_step(struct serve *serve, int64_t step)
{
	struct rdmatensor_op ops[BATCH];
	size_t nr = serve_published(serve);
	unsigned int done, n;
	int64_t unused;
	size_t i = 0;
	int err;

	while (i < nr) {
		for (n = 0; n < BATCH && i + n < nr; n++)
			prep(serve, &ops[n], i + n, step);
		err = rdmatensor_submit(serve->server.rt, ops, n, 0, 0, &done);
		if (err)
			return failed("publish tensor \"%s\", step %" PRId64 ": %s",
				      name_of(serve, i + done, &unused), step,
				      strerror(-err));
		i += n;
	}
	return EXIT_OK;
}

static int tell_ready(struct serve *serve)
{
	const struct st_file *all = serve->model.all;
	struct json_object *line = json_object_new_object();
	char what[512];

	add_string(line, "event", "ready");
	add_number(line, "tensors", all->nr);
	add_number(line, "bytes", all->data_bytes);
	add_string(line, "file", serve->path);
	add_number(line, "files", serve->model.nr);
	json_object_object_add(line, "taken_up", json_object_new_boolean(serve->domain >= 0));
	add_number(line, "load_us", (rdmatensor_now_ns() - serve->begun_ns) / 1000);
	snprintf(what, sizeof(what), "serving %zu tensor%s, %" PRIu64 " bytes of %s%s%s",
		 all->nr, plural(all->nr), all->data_bytes, serve->path,
		 serve->domain >= 0 ? ", taken up from " : "",
		 serve->domain >= 0 ? serve->keep : "");
	return server_ready(&serve->server, what, line);
}

static int serve_model(struct serve *serve)
{
	int64_t step;
	int err;

	err = load(serve);
	for (step = 0; !err && serve->domain < 0 && step < serve->steps; step++)
		err = publish_step(serve, serve->first_step + step);
	if (!err)
		err = serve_leave_domain(serve);
	if (!err)
		err = tell_ready(serve);
	if (!err)
		err = server_run(&serve->server);
	if (!err && !serve->keep)
		server_withdraw(&serve->server, (uint64_t)serve->steps * serve_published(serve),
				name_of, serve, rdmatensor_deadline_ms(SERVER_END_MS));
	if (!err)
		err = server_end(&serve->server);
	rdmatensor_close(serve->server.rt);
	st_model_free(&serve->model);
	free(serve->tensors);
	return err;
}

static int take_memory(void *own, const char *memory)
{
	struct serve *serve = own;

	return store_take_memory(memory, true, &serve->memory);
}

int cmd_serve(int argc, char **argv)
{
	struct serve serve = { .domain = -1 };
	const struct option_place places[] = {
		{ .id = OPT_STEP, .number = &serve.first_step },
		{ .id = OPT_STEPS, .number = &serve.steps },
		{ .id = OPT_EXIT_AFTER, .number = &serve.server.exit_after },
		{ .id = OPT_MEMORY, .own = &serve, .take = take_memory },
		{ .id = OPT_FILTER, .own = &serve.filter, .take = filter_take },
		{ .id = OPT_KEEP, .text = &serve.keep },
	};
	int err;

	if (!context_options_parse(COMMAND_SERVE, &serve.server.options, places,
				   NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind != 1)
		return misused("give one MODEL: a safetensors file, or a folder with model.safetensors.index.json");
	serve.path = argv[optind];
	serve.by_manager = serve.keep && !strcmp(serve.keep, KEEP_BY_MANAGER);
	if (serve.by_manager && !MANAGER_BUILT)
		return failed("keep by systemd: this tool was built without libsystemd: build it with its headers, or give a SOCKET");
	if (serve.by_manager && !manager_is_there())
		return failed("keep by systemd: no service manager listens, for NOTIFY_SOCKET is not set: run it as a service of Type=notify, or give a SOCKET");
	return serve_model(&serve);
}
