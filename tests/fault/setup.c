// SPDX-License-Identifier: GPL-2.0
/*
 * A channel that is ended the moment that it can be found, before its set-up is bounded:
 * whoever bounds it finds that out, and leaves no timer behind in what is freed. And places
 * of channels: one whose end has been reported, and that is still listed, has left its own; one
 * that is refused for want of a place never had one.
 */
#include <sched.h>
#include <unistd.h>
#include "harness.h"
#include "hold.h"

static struct pair p;

/* The channel that is not the pair's; 0: there is none */
static uint32_t newcomer(struct side *side)
{
	struct rdmatensor_channel_query query = {
		.size = sizeof(query), .flags = RDMATENSOR_CHANNEL_NEXT,
	};

	while (!call(rdmatensor_fd(side->rt), RDMATENSOR_CHANNEL_QUERY, &query)) {
		if (query.channel != side->channel)
			return query.channel;
		query.flags = RDMATENSOR_CHANNEL_NEXT;
	}
	return 0;
}

static int newcomer_state(struct side *side, uint32_t id)
{
	struct rdmatensor_channel_query query = { .size = sizeof(query), .channel = id };
	int ret = call(rdmatensor_fd(side->rt), RDMATENSOR_CHANNEL_QUERY, &query);

	return ret ? ret : (int)query.state;
}

/* Held at @point, by which it has come to its channel */
static void connect_begin(struct caller *caller, struct rdmatensor_connect *connect,
			  const char *point)
{
	char addr[64];

	memset(connect, 0, sizeof(*connect));
	connect->size = sizeof(*connect);
	test_addr(addr, sizeof(addr), p.a.port);
	EQ(rdmatensor_parse_addr(addr, 0, 0, connect->addr, NULL, 0), 0);
	hold_at(point);
	caller_begin(caller, rdmatensor_fd(p.b.rt), RDMATENSOR_CONNECT, connect);
	hold_wait();
}

static void still_works(void)
{
	struct rdmatensor_cqe cqe;

	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
	side_connect(&p.b, &p.a);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
}

TEST(connecting_is_disconnected)
{
	struct rdmatensor_disconnect disconnect = { .size = sizeof(disconnect) };
	struct rdmatensor_connect connect;
	struct caller connecting, disconnecting;
	int i;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	connect_begin(&connecting, &connect, "channel_visible");
	disconnect.channel = newcomer(&p.b);
	CHECK(disconnect.channel);
	caller_begin(&disconnecting, rdmatensor_fd(p.b.rt), RDMATENSOR_DISCONNECT, &disconnect);
	while (newcomer_state(&p.b, disconnect.channel) != RDMATENSOR_CHANNEL_CLOSING)
		sched_yield();
	/* Its teardown waits for CONNECT; nothing tells when it has come so far */
	for (i = 0; i < 20; i++)
		usleep(10000);
	hold_go();
	EQ(caller_end(&disconnecting), 0);
	EQ(caller_end(&connecting), -ESHUTDOWN);
	EQ(newcomer(&p.b), 0);
	still_works();
}

TEST(accepted_is_disconnected)
{
	struct rdmatensor_connect connect;
	struct caller connecting;
	uint32_t id;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	/* The first to come to the point is CONNECT's own channel, the second is the peer's */
	connect_begin(&connecting, &connect, "channel_visible");
	hold_at("channel_visible");
	hold_wait();
	id = newcomer(&p.a);
	CHECK(id);
	EQ(rdmatensor_disconnect(p.a.rt, id), 0);
	EQ(newcomer(&p.a), 0);
	hold_go();
	CHECK(caller_end(&connecting) < 0);
	still_works();
}

static void one_channel(struct rdmatensor_start *start)
{
	start->max_channels = 1;
}

TEST(end_is_reported_after_the_place_is_free)
{
	struct rdmatensor_disconnect disconnect = { .size = sizeof(disconnect) };
	struct caller disconnecting;
	struct rdmatensor_cqe cqe;

	/* One end of the channel is held, whichever comes first: the other one has its place back */
	pair_open(&p, 1 << 20, one_channel);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	disconnect.channel = p.b.channel;
	hold_at("channel_reported");
	caller_begin(&disconnecting, rdmatensor_fd(p.b.rt), RDMATENSOR_DISCONNECT, &disconnect);
	side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
	side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
	hold_wait();
	side_connect(&p.b, &p.a);
	hold_go();
	EQ(caller_end(&disconnecting), 0);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
}

TEST(refused_channel_takes_no_place)
{
	struct rdmatensor_connect connect;
	struct rdmatensor_cqe cqe;
	struct caller refused;

	pair_open(&p, 1 << 20, one_channel);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	connect_begin(&refused, &connect, "channel_refused");
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
	side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
	side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
	side_connect(&p.b, &p.a);
	hold_go();
	EQ(caller_end(&refused), -EUSERS);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
}
