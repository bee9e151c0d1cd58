/* SPDX-License-Identifier: GPL-2.0 */
/* What cases run beside: each load in a file of its own */
#ifndef LOAD_LOADS_H
#define LOAD_LOADS_H

#include "scene.h"

/* From begin to end it goes on, whatever the driver waits for; end has seen that it was well */
void load_bulk_begin(struct scene *scene);
void load_bulk_end(struct scene *scene);
void load_flood_begin(struct scene *scene);
void load_flood_end(struct scene *scene);
void load_gather_begin(struct scene *scene);
void load_gather_end(struct scene *scene);
void load_loss_begin(struct scene *scene);
void load_loss_end(struct scene *scene);
void load_stopped_begin(struct scene *scene);
void load_stopped_end(struct scene *scene);

#endif
