/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Dumps of the user's own contexts, without privileges.
 */
#ifndef TOOL_OWN_DUMP_H
#define TOOL_OWN_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "dump_reader.h"

/*
 * As dump_messages(), by the device file. Return: 0; -EINTR: something came or went during each of
 * @tries attempts; or a negative errno, of which nothing has been said: *cause says why the device
 * file cannot be opened, and is empty if it was
 */
int dump_own(int cmd, uint32_t context, const struct dump_reader *reader, void *arg, int tries,
	     char *cause, size_t room);

#endif
