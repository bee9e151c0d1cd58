// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Domains: descriptors of them, and what is there already for who has joined one.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "internal.h"

int rdmatensor_domain_create(struct rdmatensor *rt, uint32_t flags, int *fd)
{
	struct rdmatensor_domain_create arg = { .size = sizeof(arg), .flags = flags };
	int err;

	err = rt_ioctl(rt, RDMATENSOR_DOMAIN_CREATE, &arg);
	if (!err)
		*fd = arg.out_fd;
	return err == -ENOTTY ? -EOPNOTSUPP : err;
}

int rdmatensor_domain_query(int fd, struct rdmatensor_domain_query *query)
{
	if (!ioctl(fd, RDMATENSOR_DOMAIN_QUERY, query))
		return 0;
	/* Any other file than a domain's */
	return errno == ENOTTY ? -EINVAL : -errno;
}

int rdmatensor_start_domain(struct rdmatensor_start *start, int fd)
{
	if (start->size < offsetof(struct rdmatensor_start, domain_fd) + sizeof(start->domain_fd))
		return -EINVAL;
	start->domain_fd = fd;
	start->flags |= RDMATENSOR_START_DOMAIN;
	return 0;
}

int rdmatensor_pool_query(struct rdmatensor *rt, struct rdmatensor_pool_query *query)
{
	return rt_ioctl(rt, RDMATENSOR_POOL_QUERY, query);
}

int rdmatensor_lasting_query(struct rdmatensor *rt, struct rdmatensor_lasting_query *query)
{
	return rt_ioctl(rt, RDMATENSOR_LASTING_QUERY, query);
}

int rdmatensor_dump(struct rdmatensor *rt, struct rdmatensor_dump *dump)
{
	return rt_ioctl(rt, RDMATENSOR_DUMP, dump);
}

int rdmatensor_pool_open(struct rdmatensor *rt, uint32_t id, struct rdmatensor_pool *pool)
{
	struct rdmatensor_pool_query query = { .size = sizeof(query), .pool_id = id };
	int err;

	err = rdmatensor_pool_query(rt, &query);
	if (err)
		return err;
	if (query.out_flags & RDMATENSOR_POOL_MAPPABLE)
		return rt_map_pool(rt, id, query.bytes, query.out_mmap_offset, pool);
	pool->base = NULL;
	pool->bytes = query.bytes;
	pool->id = id;
	return 0;
}
