// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The public headers as C++, with shapes as the C library and the ring have them. Compiled only */
#include <rdmatensor/rdmatensor.h>
#include <rdmatensor/params.h>
#include <rdmatensor/netlink.h>

int publish(struct rdmatensor *rt, const struct rdmatensor_pool *pool,
	    const struct rdmatensor_cqe *cqe)
{
	uint64_t dims[] = { 3, 4 };
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	struct rdmatensor_op op;

	rdmatensor_start_init(&start, nullptr);
	rdmatensor_query(rt, &query);
	rdmatensor_prep_publish(&op, "x", 0, 1, 0, 48, RDMATENSOR_DT_FLOAT, 2, dims, 1, 0);
	rdmatensor_submit(rt, &op, 1, 0, 0, nullptr);
	rdmatensor_publish(rt, "x", 0, pool, 0, 48, RDMATENSOR_DT_FLOAT, 2, cqe->dims, 1, 0);
	return rdmatensor_publish(rt, "y", 0, pool, 0, 48, RDMATENSOR_DT_FLOAT, 2, dims, 1, 0);
}
