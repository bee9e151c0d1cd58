// SPDX-License-Identifier: GPL-2.0
/* Addresses that go and come back while contexts are there: DHCP renewals, links that flap */
#include <stdlib.h>
#include "harness.h"

#define BYTES 5000

static struct side owner, first, second;

static void address(const char *what)
{
	const char *netdev = getenv("LAB_NETDEV");
	char command[128];

	snprintf(command, sizeof(command), "ip addr %s %s/24 dev %s", what, test_ip(),
		 netdev ? netdev : "d0");
	EQ(system(command), 0);
}

static void strictly(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_set(start, "mr_mode", RDMATENSOR_MR_MODE_STRICT), 0);
}

static void comes(struct side *side)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	EQ(fetch(side, "x", 0, BYTES, &at, &cqe), 0);
	CHECK(filled(side_at(side, at), BYTES, 7));
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
}

/*
 * In its new place in the table of GIDs. What a context has made for itself by the old one goes
 * on: in strict mode each channel makes a registration queue of its own
 */
TEST(channels_after_an_address_has_come_back)
{
	struct rdmatensor_op op;
	uint64_t dim = BYTES;
	uint64_t at;

	side_open(&owner, "owner", 65536, 1, strictly);
	side_open(&first, "first", 65536, 0, strictly);
	side_connect(&first, &owner);
	address("del");
	address("add");
	side_open(&second, "second", 65536, 0, strictly);
	side_connect(&second, &owner);
	at = side_alloc(&owner, BYTES);
	fill(side_at(&owner, at), BYTES, 7);
	rdmatensor_prep_publish(&op, "x", 0, owner.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 2, 0);
	EQ(side_do(&owner, &op), 0);
	comes(&second);
	/* A context of before, too */
	side_connect(&first, &owner);
	comes(&first);
}
