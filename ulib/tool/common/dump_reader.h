/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who reads a dump, by netlink or by the device file, and what it was of.
 */
#ifndef TOOL_DUMP_READER_H
#define TOOL_DUMP_READER_H

#include <stdbool.h>

struct nl_msg;

/**
 * struct dump_extent - what a dump is of
 * @whole: false: objects came and went during each attempt; some may be missing or listed twice
 * @own: of the user's own contexts and domains alone, for want of CAP_NET_ADMIN
 */
struct dump_extent {
	bool whole;
	bool own;
};

/**
 * struct dump_reader - who reads a dump message by message
 * @begin: an attempt begins: what came by the one before, if there was one, is void
 * @message: the next object, which is valid during the call
 */
struct dump_reader {
	void (*begin)(void *arg);
	void (*message)(struct nl_msg *msg, void *arg);
};

#endif
