// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "beside.h"
#include "figures.h"
#include "matrix.h"
#include "scene.h"
#include "sleeps.h"
#include "steps.h"

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "beside"))
		return !!beside_run(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "figures"))
		return figures_run(argv[2], atof(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "peer"))
		return peer_run(argv[2]);
	if (argc >= 3 && !strcmp(argv[1], "matrix"))
		return !!matrix_run(argv[2], argv + 3);
	if (argc >= 2 && !strcmp(argv[1], "knows"))
		return matrix_knows(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "sleeps"))
		return !!sleeps_run(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "steps"))
		return steps_run(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: load beside PEER\n       load figures PEER SECONDS\n"
		"       load peer IP\n       load matrix IP [LOAD]...\n"
		"       load sleeps IP\n       load steps IP BYTES NUMBER\n");
	return 2;
}
