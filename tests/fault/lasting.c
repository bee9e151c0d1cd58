// SPDX-License-Identifier: GPL-2.0
/*
 * A PUBLISH with uses 0 is held when the tensor is offered, and before those who wait for it in
 * other contexts of the domain have met it.
 */
#include <unistd.h>
#include "harness.h"
#include "hold.h"

#define BYTES 5000

static struct side maker, heir;
static int domain;
static uint64_t at, to;
static struct rdmatensor_op op;
static struct rdmatensor_submit submit;
static uint64_t dim;

static void join(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_domain(start, domain), 0);
}

static void want(uint64_t user_data)
{
	struct rdmatensor_op fetch;

	rdmatensor_prep_fetch(&fetch, RDMATENSOR_CHANNEL_SELF, "n", 0, heir.pool.id, to, BYTES, 0,
			      user_data);
	EQ(side_do(&heir, &fetch), 0);
}

/* @heir waits for "n", and @maker's PUBLISH of it is held */
static void begin(struct caller *held)
{
	side_open(&maker, "maker", 1 << 20, 0, NULL);
	EQ(rdmatensor_domain_create(maker.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	side_open(&heir, "heir", 1 << 20, 0, join);
	at = side_alloc(&maker, BYTES);
	fill(side_at(&maker, at), BYTES, 1);
	to = side_alloc(&heir, BYTES);
	want(1);
	dim = BYTES;
	rdmatensor_prep_publish(&op, "n", 0, maker.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	submit = (struct rdmatensor_submit){
		.size = sizeof(submit), .op_size = sizeof(op),
		.ops_uptr = rdmatensor_op_ptr(&op), .nr_ops = 1,
	};
	hold_at("publish_lasting");
	caller_begin(held, rdmatensor_fd(maker.rt), RDMATENSOR_SUBMIT, &submit);
	hold_wait();
}

static void withdrawn(void)
{
	struct rdmatensor_op other;

	rdmatensor_prep_withdraw(&other, "n", 0, 9);
	EQ(side_do(&heir, &other), 0);
	EQ(side_next(&heir, RDMATENSOR_CQE_WITHDRAW, 9, NULL), 0);
}

static void go(struct caller *held)
{
	hold_go();
	EQ(caller_end(held), 0);
	EQ(submit.out_done, 1);
}

/* Who asks from now on has it; who has waited meets it once the PUBLISH goes on */
TEST(a_lasting_tensor_before_others_have_met_it)
{
	struct rdmatensor_cqe cqe;
	struct caller held;

	begin(&held);
	side_none(&heir, RDMATENSOR_CQE_FETCH, 1, 20);
	EQ(fetch(&heir, "n", 0, BYTES, &at, &cqe), 0);
	CHECK(filled(side_at(&heir, at), BYTES, 1));
	go(&held);
	EQ(side_next(&heir, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	CHECK(filled(side_at(&heir, to), BYTES, 1));
	withdrawn();
	close(domain);
}

/* Nobody meets what has gone */
TEST(a_lasting_tensor_that_is_withdrawn_before_others_have_met_it)
{
	struct rdmatensor_op cancel;
	struct caller held;

	begin(&held);
	withdrawn();
	EQ(rdmatensor_pool_free(heir.rt, &maker.pool, at), 0);
	go(&held);
	side_none(&heir, RDMATENSOR_CQE_FETCH, 1, 20);
	rdmatensor_prep_cancel(&cancel, 1);
	EQ(side_do(&heir, &cancel), 0);
	EQ(side_next(&heir, RDMATENSOR_CQE_FETCH, 1, NULL), -ECANCELED);
	close(domain);
}

/* Nor does a context that has ended meanwhile */
TEST(a_context_ends_before_it_has_met_a_lasting_tensor)
{
	struct caller held;

	begin(&held);
	side_close(&heir);
	go(&held);
	close(domain);
}
