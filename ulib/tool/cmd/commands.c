// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tool/cmd/commands.h"

int (*const command_runs[NR_COMMANDS])(int argc, char **argv) = {
	[COMMAND_SERVE] = cmd_serve,
	[COMMAND_FETCH] = cmd_fetch,
	[COMMAND_LS] = cmd_ls,
	[COMMAND_PERF] = cmd_perf,
	[COMMAND_GATHER] = cmd_gather,
	[COMMAND_INFO] = cmd_info,
	[COMMAND_DOCTOR] = cmd_doctor,
	[COMMAND_DOMAIN] = cmd_domain,
	[COMMAND_SHOW] = cmd_show,
	[COMMAND_TOP] = cmd_top,
	[COMMAND_METRICS] = cmd_metrics,
	[COMMAND_SET] = cmd_set,
	[COMMAND_MONITOR] = cmd_monitor,
};
