/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TOOL_MESSAGE_H
#define TOOL_MESSAGE_H

/* --verbose */
void be_verbose(void);

#endif
