/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <rdmatensor/rdmatensor.h>
#include <stdio.h>
int main(int argc, char **argv) /* publishes a tensor; with ADDRESS: fetches it from there */
{
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor *rt;
	uint32_t peer;
	uint64_t at;
	int err;

	rdmatensor_start_init(&start, argc > 1 ? "fetcher" : "publisher");
	if (argc == 1)
		rdmatensor_start_listen(&start, ":18521", NULL, 0);
	if (rdmatensor_open_cause(NULL, &rt, start.cause, sizeof(start.cause)))
		return fprintf(stderr, "%s\n", start.cause), 1;
	if ((err = rdmatensor_start(rt, &start)))
		return fprintf(stderr, "start: %s (%s)\n", strerror(-err), start.cause), 1;
	if ((err = rdmatensor_pool_create(rt, 4096, &pool)) || (err = rdmatensor_pool_alloc(rt, &pool, 16, &at)))
		return fprintf(stderr, "a pool of 4096 bytes: %s\n", strerror(-err)), 1;
	float *x = (void *)((char *)pool.base + at);
	if (argc == 1) {
		memcpy(x, (float[]){ 1, 2, 3, 4 }, 16);
		err = rdmatensor_publish(rt, "weights", 0, &pool, at, 16, RDMATENSOR_DT_FLOAT, 1, (uint64_t[]){ 4 }, 1, 0);
	} else {
		if (rdmatensor_connect(rt, argv[1], NULL, 0, &peer, start.cause, sizeof(start.cause)))
			return fprintf(stderr, "%s\n", start.cause), 1;
		err = rdmatensor_fetch(rt, peer, "weights", 0, &pool, at, 16, rdmatensor_deadline_ms(10000), &cqe);
	}
	if (err)
		return fprintf(stderr, "weights: %s\n", strerror(-err)), 1;
	printf("%g %g %g %g\n", x[0], x[1], x[2], x[3]);
	rdmatensor_close(rt);
	return 0;
}
