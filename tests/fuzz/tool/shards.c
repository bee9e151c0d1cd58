// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a peer tells of its shards, or what goes into that: an index, and headers with zeroes
 * between them; the first byte of the input says which. What is taken of these has each tensor
 * in one shard, in which the index has it, and names of files in a folder; packed again it is
 * the same.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "tensors.h"
#include "text.h"
#include "safetensors/model.h"

/* Words of each refusal, and an index and headers that get it, as seed_text() takes them */
#define ONE_BYTE "'dtype':'U8','shape':[],'data_offsets':[0,1]"
#define SHARD(_name) "{'" _name "':{" ONE_BYTE "}}"
#define A_AND_B "|" SHARD("x") "|" SHARD("y")
/* A name that can be changed in many places, while what is refused stays so */
#define LONG "abcdefghijklmnopqrstuvwxyz"

static const struct {
	const char *why;
	const char *texts;
} refusals[] = {
	{ "the index is no JSON", "{'a' 1}" A_AND_B },
	{ "the index's JSON ends too early", "{'a':" A_AND_B },
	{ "the index has no weight_map", "{'a':1}" A_AND_B },
	{ "weight_map is empty", "{'weight_map':{}}" A_AND_B },
	{ "no shard's name for it", "{'weight_map':{'x':1}}" A_AND_B },
	{ "its shard", "{'weight_map':{'x':'../a.safetensors'}}" A_AND_B },
	{ "objects and arrays, 16 are", "{'a':[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}" },
	{ "not those that their index names", "{'weight_map':{'x':'c.safetensors'}}" A_AND_B },
	{ "the index does not name it",
	  "{'weight_map':{'y':'b.safetensors','z':'a.safetensors'}}" A_AND_B },
	{ "the index says that shard",
	  "{'weight_map':{'x':'a.safetensors','y':'b.safetensors','" LONG "':'a.safetensors'}}"
	  A_AND_B },
	{ "the index says that b",
	  "{'weight_map':{'x':'b.safetensors','y':'a.safetensors'}}" A_AND_B },
	{ "shard a.safetensors: ",
	  "{'weight_map':{'x':'a.safetensors','y':'b.safetensors'}}|{'x':1}|" SHARD("y") },
	{ "the list of shards is longer", NULL },
};

static unsigned int kind_pack, kind_part, refusal_kinds[NR(refusals)];

/* The first byte of an input */
enum { PACK, TEXTS };

void fuzz_init(void)
{
	size_t i;

	kind_pack = to_reach("shards are taken");
	kind_part = to_reach("some tensors of shards are taken");
	for (i = 0; i < NR(refusals); i++)
		refusal_kinds[i] = to_reach("%s", refusals[i].why);
}

static void check_model(const struct st_model *model)
{
	size_t i, k, nr = 0;

	check_tensors(model->all);
	for (i = 0; i < model->nr; i++) {
		const struct st_shard *shard = &model->shards[i];

		HOLDS(!strchr(shard->name, '/') && *shard->name != '.');
		HOLDS(!i || strcmp(model->shards[i - 1].name, shard->name) < 0);
		check_tensors(&shard->file);
		for (k = 0; k < shard->file.nr; k++)
			HOLDS(memmem(model->index, model->index_bytes, shard->name,
				     strlen(shard->name)));
		nr += shard->file.nr;
	}
	HOLDS(nr == model->all->nr);
	for (i = 0; i < nr; i++) {
		struct st_place place = st_model_place(model, i);
		const struct st_tensor *tensor = &model->all->tensors[i];

		HOLDS(model->shards[place.shard].file.tensors[place.tensor].bytes == tensor->bytes);
		HOLDS(!tensor->bytes || !strcmp(tensor->name, model->shards[place.shard].file
						.tensors[place.tensor].name));
	}
}

static bool every_other(void *arg, const char *name)
{
	(void)arg;
	return name[strlen(name) - 1] & 1;
}

static void check_part(struct st_model *model)
{
	char error[ST_ERROR_MAX] = "";
	size_t before = model->all->nr;
	int err;

	err = st_model_filter(model, every_other, NULL, error, sizeof(error));
	HOLDS(!err || err == -ENOENT || *error);
	if (err)
		return;
	check_model(model);
	if (model->all->nr < before)
		reached(kind_part);
}

static void take_pack(const char *text, size_t bytes)
{
	char error[ST_ERROR_MAX] = "", *copy = malloc(bytes), *again;
	struct st_model model, same;
	size_t i, len;

	/* What is read beyond its end is found */
	HOLDS(copy || !bytes);
	memcpy(copy, text, bytes);
	if (st_model_unpack(copy, bytes, &model, error, sizeof(error))) {
		HOLDS(*error);
		for (i = 0; i < NR(refusals); i++)
			if (strstr(error, refusals[i].why))
				reached(refusal_kinds[i]);
		free(copy);
		return;
	}
	free(copy);
	reached(kind_pack);
	check_model(&model);
	HOLDS(!st_model_pack(&model, &again, &len, error, sizeof(error)));
	HOLDS(!st_model_unpack(again, len, &same, error, sizeof(error)));
	HOLDS(same.nr == model.nr && same.index_bytes == model.index_bytes);
	check_same(same.all, model.all);
	free(again);
	st_model_free(&same);
	check_part(&model);
	st_model_free(&model);
}

/* Of the index, and headers of a.safetensors and those that follow, with zeroes between them */
static char *make_pack(const char *text, size_t bytes, size_t *len)
{
	struct st_tensor files[8] = { 0 };
	char names[NR(files)][16], error[ST_ERROR_MAX], *pack;
	struct st_file table;
	uint64_t length;
	size_t nr, at;

	for (nr = 0, at = 0; nr < NR(files) && at < bytes; nr++) {
		snprintf(names[nr], sizeof(names[nr]), "%c.safetensors", (char)('`' + nr));
		files[nr] = (struct st_tensor){
			.name = nr ? names[nr] : (char *)ST_INDEX_NAME,
			.data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
			.dims = { strnlen(text + at, bytes - at) },
		};
		at += files[nr].dims[0] + 1;
	}
	HOLDS(!st_make(files, nr, NULL, &table, error, sizeof(error)));
	length = table.header_bytes;
	pack = malloc(8 + length + bytes);
	HOLDS(pack);
	memcpy(pack, &length, 8);
	memcpy(pack + 8, table.header, length);
	*len = 8 + length;
	for (nr = 0, at = 0; nr < NR(files) && at < bytes; nr++) {
		memcpy(pack + *len, text + at, files[nr].dims[0]);
		*len += files[nr].dims[0];
		at += files[nr].dims[0] + 1;
	}
	st_free(&table);
	return pack;
}

static void take_texts(const char *text, size_t bytes)
{
	size_t len;
	char *pack = make_pack(text, bytes, &len);

	take_pack(pack, len);
	free(pack);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	if (!size)
		return;
	if (*data & TEXTS)
		take_texts((const char *)data + 1, size - 1);
	else
		take_pack((const char *)data + 1, size - 1);
}

/* As texts, and packed */
static void seed_both(const char *texts)
{
	char text[1024], *pack;
	size_t len = text_from(texts, text, sizeof(text));

	seed_with(TEXTS, text, len);
	pack = make_pack(text, len, &len);
	seed_with(PACK, pack, len);
	free(pack);
}

void fuzz_seeds(void)
{
	static const char longer[] = "\xff\0\0\0\0\0\0\0{}";
	size_t i;

	for (i = 0; i < NR(refusals); i++)
		if (refusals[i].texts)
			seed_both(refusals[i].texts);
	seed_both("{'metadata':{'total_size':2},"
		  "'weight_map':{'x':'a.safetensors','y':'b.safetensors'}}" A_AND_B);
	seed_both("{'weight_map':{'v':'a.safetensors','w':'a.safetensors','z':'a.safetensors',"
		  "'y':'b.safetensors'}}|{'v':{'dtype':'F32','shape':[0],'data_offsets':[0,0]},"
		  "'w':{'dtype':'F4','shape':[2],'data_offsets':[0,1]},"
		  "'z':{'dtype':'F8_E8M0','shape':[2],'data_offsets':[1,3]}}|" SHARD("y"));
	seed_with(PACK, longer, sizeof(longer) - 1);
}
