/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parts of documents that are made from the tables of the tool.
 */
#ifndef FILL_H
#define FILL_H

#include <stdbool.h>

/* params.c: the parameters, for Documentation/parameters.md, for rdmatensor-params(7) and for modprobe.d(5) */

void params_markdown(void);
void params_man(void);
void params_modprobe(void);

/* options.c: sections of man pages */

void commands_man(void);
/* Of the command of that name alone. False: there is none */
bool options_man(const char *command);
/* Of all commands that open a context */
void context_options_man(void);

/* completion.c: what bash offers, and zsh, which says also what each is */

void completion_words(void);
void completion_zsh(void);

#endif
