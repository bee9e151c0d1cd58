// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A handle's life: open, start, close, and what asks about the whole context.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#ifndef RDMATENSOR_VERSION
#define RDMATENSOR_VERSION "0.0.0"
#endif

const char *rdmatensor_version(void)
{
	return RDMATENSOR_VERSION;
}

static int open_failed(const char *path, int err, char *cause, size_t cause_len)
{
	const char *remedy;

	switch (err) {
	case -ENOENT:
		remedy = ": load the module with `modprobe rdmatensor`, or give the container this device node";
		break;
	case -ENODEV:
	case -ENXIO:
		remedy = ": load the module with `modprobe rdmatensor`";
		break;
	case -EACCES:
	case -EPERM:
		remedy = ": be root, or of the group that owns the file (adduser USER rdma, and log in again)";
		break;
	case -ENOTTY:
		remedy = ": this is no rdmatensor device";
		break;
	default:
		remedy = "";
	}
	return rt_cause(cause, cause_len, err, "open %s: %s%s", path, strerror(-err), remedy);
}

int rdmatensor_open(const char *path, struct rdmatensor **out)
{
	return rdmatensor_open_cause(path, out, NULL, 0);
}

int rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
			  size_t cause_len)
{
	struct rdmatensor_query query;
	struct rdmatensor *rt;
	int err;

	*out = NULL;
	if (!path || !*path)
		path = secure_getenv("RDMATENSOR_DEVICE_PATH");
	if (!path || !*path)
		path = RDMATENSOR_DEVICE_PATH;
	rt = calloc(1, sizeof(*rt));
	if (!rt)
		return open_failed(path, -ENOMEM, cause, cause_len);
	pthread_mutex_init(&rt->lock, NULL);
	pthread_mutex_init(&rt->setup, NULL);
	pthread_mutex_init(&rt->reaping, NULL);
	rt->fd = open(path, O_RDWR | O_CLOEXEC);
	if (rt->fd < 0) {
		err = -errno;
		goto fail;
	}
	/* A file that is something else shows here, not at the first real call */
	err = rdmatensor_query(rt, &query);
	if (err) {
		close(rt->fd);
		goto fail;
	}
	*out = rt;
	return 0;
fail:
	pthread_mutex_destroy(&rt->reaping);
	pthread_mutex_destroy(&rt->setup);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
	return open_failed(path, err, cause, cause_len);
}

void rdmatensor_close(struct rdmatensor *rt)
{
	if (!rt)
		return;
	if (rt->ring.hdr)
		munmap(rt->ring.hdr, rt->ring.bytes);
	rt_unmap_all(rt);
	close(rt->fd);
	pthread_mutex_destroy(&rt->reaping);
	pthread_mutex_destroy(&rt->setup);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

int rdmatensor_fd(const struct rdmatensor *rt)
{
	return rt->fd;
}

int rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query, size_t size)
{
	memset(query, 0, size);
	query->size = (uint32_t)size;
	return rt_ioctl(rt, RDMATENSOR_QUERY, query);
}

static size_t page_round(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

int rt_ring_map(struct rdmatensor *rt)
{
	size_t page = page_round(1);
	size_t bytes;
	void *mem;
	int err;

	mem = mmap(NULL, page, PROT_READ, MAP_SHARED, rt->fd,
		   RDMATENSOR_MMAP_RING);
	if (mem == MAP_FAILED)
		return -errno;
	bytes = rt_ring_bytes(mem);
	munmap(mem, page);
	if (!bytes)
		return -EPROTO;
	bytes = page_round(bytes);
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rt->fd,
		   RDMATENSOR_MMAP_RING);
	if (mem == MAP_FAILED)
		return -errno;
	err = rt_ring_init(&rt->ring, mem, bytes);
	if (err)
		munmap(mem, bytes);
	return err;
}

int rdmatensor_start(struct rdmatensor *rt, struct rdmatensor_start *start)
{
	int err;

	/* Of a program that cleared the struct itself, before there was @set */
	if (!start->size)
		start->size = offsetof(struct rdmatensor_start, set);
	/* One at a time from START to the mapping: of several threads one has started it */
	pthread_mutex_lock(&rt->setup);
	err = rt_ioctl(rt, RDMATENSOR_START, start);
	start->cause[sizeof(start->cause) - 1] = '\0';
	/* Started by a call before, which could not map the ring: this one goes on there */
	if (!err || (err == -EISCONN && !rt->ring.hdr)) {
		rt->handshake_ms = start->handshake_ms;
		if (err)
			start->cause[0] = '\0';
		err = rt_ring_map(rt);
		if (err)
			rt_cause(start->cause, sizeof(start->cause), err,
				 "start: mapping the completion ring failed: %s",
				 strerror(-err));
	}
	pthread_mutex_unlock(&rt->setup);
	return err;
}

int rdmatensor_configure(struct rdmatensor *rt, uint32_t mask, uint32_t flags)
{
	struct rdmatensor_configure arg = {
		.size = sizeof(arg),
		.mask = mask,
		.flags = flags,
	};

	return rt_ioctl(rt, RDMATENSOR_CONFIGURE, &arg);
}

int rdmatensor_stats(struct rdmatensor *rt, uint32_t channel,
		     uint64_t *counters, unsigned int nr)
{
	struct rdmatensor_stats arg = {
		.size = sizeof(arg),
		.channel = channel,
		.nr = nr,
		.counters_uptr = rdmatensor_op_ptr(counters),
	};

	memset(counters, 0, nr * sizeof(*counters));
	return rt_ioctl(rt, RDMATENSOR_STATS, &arg);
}

int rdmatensor_step_abort(struct rdmatensor *rt, int64_t step_id, int status,
			  const char *text)
{
	struct rdmatensor_step_abort arg = {
		.size = sizeof(arg),
		.status = status,
		.step_id = step_id,
		.text_uptr = rdmatensor_op_ptr(text),
		.text_len = text ? (uint32_t)strnlen(text, RDMATENSOR_STATUS_TEXT_MAX) : 0,
	};

	return rt_ioctl(rt, RDMATENSOR_STEP_ABORT, &arg);
}
