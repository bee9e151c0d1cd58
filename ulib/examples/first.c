/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <rdmatensor/node.h>
#include <stdio.h>
int main(int argc, char **argv) /* offers a tensor until Enter; with HOST:PORT/NAME: gets that one */
{
	float weights[4] = { 1, 2, 3, 4 }, got[4] = { 0 }, *x = argc > 1 ? got : weights;
	struct rdmatensor_tensor t = { .data = x, .bytes = 16, .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .dims = { 4 } };
	struct rdmatensor_node *node;
	int err = rdmatensor_node_open(&node, argc > 1 ? NULL : ":18521");
	if (err || (argc > 1 ? rdmatensor_get(node, argv[1], &t) : rdmatensor_offer(node, "weights", &t)))
		return fprintf(stderr, "%s\n", rdmatensor_node_error()), 1;
	return printf("%g %g %g %g\n", x[0], x[1], x[2], x[3]), argc > 1 ? 0 : !getchar();
}
