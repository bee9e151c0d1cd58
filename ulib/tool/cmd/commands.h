/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands: each takes argv from its own name on, and returns an exit code.
 */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "tool/common/option_table.h"

int cmd_serve(int argc, char **argv);
int cmd_fetch(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_gather(int argc, char **argv);
int cmd_domain(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* Each command's function, by its number in the option table */
extern int (*const command_runs[NR_COMMANDS])(int argc, char **argv);

#endif
