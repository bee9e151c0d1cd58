// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables: rows that are partitioned over workers, and gathers of them.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "internal.h"

int rdmatensor_table_export(struct rdmatensor *rt, const char *name,
			    const struct rdmatensor_pool *pool, uint64_t offset,
			    uint64_t row_start, uint64_t row_end, uint64_t row_bytes,
			    uint64_t stride, uint32_t data_type, uint32_t *table)
{
	struct rdmatensor_table_export arg = {
		.size = sizeof(arg),
		.name_uptr = rdmatensor_op_ptr(name),
		.name_len = (uint32_t)strlen(name),
		.pool_id = pool->id,
		.offset = offset,
		.row_start = row_start,
		.row_end = row_end,
		.row_bytes = row_bytes,
		.stride = stride,
		.data_type = data_type,
	};
	int err = rt_ioctl(rt, RDMATENSOR_TABLE_EXPORT, &arg);

	if (!err)
		*table = arg.out_table;
	return err;
}

int rdmatensor_table_open_sized(struct rdmatensor *rt, const char *name, const uint32_t *channels,
				unsigned int nr_channels, struct rdmatensor_table_open *open,
				size_t size)
{
	int err;

	if (size < RT_END_OF(struct rdmatensor_table_open, cause))
		return -EINVAL;
	open->size = (uint32_t)size;
	open->name_uptr = rdmatensor_op_ptr(name);
	open->name_len = (uint32_t)strlen(name);
	open->channels_uptr = rdmatensor_op_ptr(channels);
	open->nr_channels = nr_channels;
	err = rt_ioctl(rt, RDMATENSOR_TABLE_OPEN, open);
	open->cause[sizeof(open->cause) - 1] = '\0';
	if (err && !open->cause[0])
		rt_cause(open->cause, sizeof(open->cause), err, "table: %s", strerror(-err));
	return err;
}

int rdmatensor_table_close(struct rdmatensor *rt, uint32_t table)
{
	struct rdmatensor_table_close arg = { .size = sizeof(arg), .table = table };

	return rt_ioctl(rt, RDMATENSOR_TABLE_CLOSE, &arg);
}

int rdmatensor_gather(struct rdmatensor *rt, uint32_t table, const uint64_t *ids,
		      uint64_t nr_ids, const struct rdmatensor_pool *pool, uint64_t offset,
		      uint64_t bytes, uint64_t deadline_ns, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;

	rdmatensor_prep_gather(&op, table, ids, nr_ids, pool->id, offset, bytes, deadline_ns, 0);
	return rdmatensor_run(rt, &op, cqe);
}
