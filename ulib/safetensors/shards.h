/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef ST_SHARDS_H
#define ST_SHARDS_H

#include "model.h"

/* Makes @all and @places of a model with an index. 0, -EINVAL, -ENOMEM, with a text */
int st_shards_list(struct st_model *model, char *error, size_t error_len);
/* Frees them */
void st_shards_unlist(struct st_model *model);
/* A copy of @name. 0, -ENOMEM */
int st_shard_name(struct st_shard *shard, const char *name);
/* Closes the file, and frees all but the struct */
void st_shard_free(struct st_shard *shard);

#endif
