/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands: each takes argv from its own name on, and returns an exit code.
 */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

int cmd_serve(int argc, char **argv);
int cmd_fetch(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_gather(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
