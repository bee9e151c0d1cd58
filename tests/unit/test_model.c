// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Models with shards: in folders, from peers, through serve and fetch on the fake device, and
 * all that index and shards must not say.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "fake.h"
#include "safetensors/model.h"
#include "served.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/published.h"
#include "unit.h"

#define ONE "model-00001-of-00003.safetensors"
#define TWO "model-00002-of-00003.safetensors"
#define THREE "model-00003-of-00003.safetensors"

static char dir[256], from[300], to[300], file[320];
static char error[ST_ERROR_MAX];
static struct st_model model;

/* ---- files ------------------------------------------------------------------ */

static const char *in(const char *folder, const char *name)
{
	static char paths[4][700];
	static unsigned int next;
	char *path = paths[next++ % NR(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *path, const void *bytes, size_t nr)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, nr, out), nr);
	assert_int_equal(fclose(out), 0);
}

static char *read_file(const char *path, size_t *bytes)
{
	static char texts[2][65536];
	static unsigned int next;
	char *content = texts[next++ % 2];
	FILE *got = fopen(path, "r");

	assert_non_null(got);
	*bytes = fread(content, 1, sizeof(texts[0]) - 1, got);
	content[*bytes] = '\0';
	fclose(got);
	return content;
}

/* JSON with ' for " */
static char *quoted(const char *text)
{
	static char json[8192];
	char *p;

	snprintf(json, sizeof(json), "%s", text);
	for (p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	return json;
}

/* A shard with these tensors, whose bytes count from @first */
static void write_shard(const char *name, const char *header, size_t data, char first)
{
	char content[4096];
	const char *json = quoted(header);
	uint64_t length = strlen(json);
	size_t i;

	memcpy(content, &length, 8);
	memcpy(content + 8, json, length);
	for (i = 0; i < data; i++)
		content[8 + length + i] = (char)(first + i);
	write_file(in(from, name), content, 8 + length + data);
}

static void write_index(const char *text)
{
	const char *json = quoted(text);

	write_file(in(from, ST_INDEX_NAME), json, strlen(json));
}

#define T(name, dtype, shape, offsets) \
	"'" name "':{'dtype':'" dtype "','shape':" shape ",'data_offsets':" offsets "}"

static const char header_one[] = "{'__metadata__':{'format':'pt'},"
	T("a.w", "F32", "[3,2]", "[0,24]") "," T("a/q", "F4", "[3,2]", "[24,27]") "}";
static const char header_two[] = "{'__metadata__':{'format':'pt'},"
	T("b.w", "BF16", "[5]", "[0,10]") "," T("none", "I64", "[0]", "[10,10]") ","
	T("b.s", "F8_E8M0", "[3]", "[10,13]") "}  ";
static const char header_three[] = "{'__metadata__':{'format':'np','only':'third'},"
	T("c.w", "F32", "[1]", "[0,4]") "," T("c.n", "F8_E4M3FNUZ", "[2]", "[4,6]") ","
	T("c.f", "F6_E2M3", "[4]", "[6,9]") "}";

#define MAP_ONE "'a.w':'" ONE "','a/q':'" ONE "',"
#define MAP_TWO "'b.w':'" TWO "','b.s':'" TWO "','none':'" TWO "',"
#define MAP_THREE "'c.w':'" THREE "','c.n':'" THREE "','c.f':'" THREE "'"

static const char index_text[] = "{\n  'metadata': {'total_size': 49, 'by': ['a', 'test']},\n"
	"  'weight_map': {" MAP_ONE MAP_TWO MAP_THREE "}\n}\n";

static void make_folder(void)
{
	write_shard(ONE, header_one, 27, 0);
	write_shard(TWO, header_two, 13, 50);
	write_shard(THREE, header_three, 9, 100);
	write_index(index_text);
}

static void remove_folder(const char *folder)
{
	DIR *open = opendir(folder);
	struct dirent *entry;

	assert_non_null(open);
	while ((entry = readdir(open)))
		if (*entry->d_name != '.' || strlen(entry->d_name) > 2)
			unlink(in(folder, entry->d_name));
	closedir(open);
	assert_int_equal(rmdir(folder), 0);
}

static unsigned int files_in(const char *folder)
{
	DIR *open = opendir(folder);
	struct dirent *entry;
	unsigned int nr = 0;

	assert_non_null(open);
	while ((entry = readdir(open)))
		nr += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(open);
	return nr;
}

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	snprintf(dir, sizeof(dir), "%.200s/model-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(from, sizeof(from), "%s/from", dir);
	snprintf(to, sizeof(to), "%s/to", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	assert_int_equal(mkdir(from, 0700), 0);
	assert_int_equal(mkdir(to, 0700), 0);
	memset(&model, 0, sizeof(model));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	st_model_free(&model);
	unlink(file);
	remove_folder(from);
	remove_folder(to);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void open_model(void)
{
	st_model_free(&model);
	if (st_model_open(from, &model, error, sizeof(error)))
		fail_msg("%s", error);
}

/* ---- what a model is -------------------------------------------------------- */

static void assert_tensor(size_t i, const char *name, uint64_t begin, uint64_t bytes)
{
	struct st_place place = st_model_place(&model, i);
	const struct st_tensor *tensor = &model.all->tensors[i], *of;

	assert_string_equal(tensor->name, name);
	assert_int_equal(tensor->begin, begin);
	assert_int_equal(tensor->bytes, bytes);
	of = &model.shards[place.shard].file.tensors[place.tensor];
	assert_string_equal(of->name, name);
	assert_string_equal(of->dtype, tensor->dtype);
}

static void test_open(void **state)
{
	size_t bytes;
	char *text;

	(void)state;
	make_folder();
	open_model();
	assert_int_equal(model.nr, 3);
	assert_string_equal(model.shards[1].name, TWO);
	text = read_file(in(from, ST_INDEX_NAME), &bytes);
	assert_int_equal(model.index_bytes, bytes);
	assert_memory_equal(model.index, text, bytes);
	/* As one file: long elements before short ones, so that each is aligned */
	assert_int_equal(model.all->nr, 8);
	assert_int_equal(model.all->data_bytes, 49);
	assert_tensor(0, "none", 0, 0);
	assert_tensor(1, "a.w", 0, 24);
	assert_tensor(2, "c.w", 24, 4);
	assert_tensor(3, "b.w", 28, 10);
	assert_tensor(4, "b.s", 38, 3);
	assert_tensor(5, "c.n", 41, 2);
	assert_tensor(6, "c.f", 43, 3);
	assert_tensor(7, "a/q", 46, 3);
	/* Of metadata that are in several, the first shard's stays */
	assert_contains(model.all->header, "\"format\":\"pt\"");
	assert_contains(model.all->header, "\"only\":\"third\"");
	/* Through symbolic links, as in a cache of models */
	assert_int_equal(rename(in(from, ONE), in(to, "blob")), 0);
	assert_int_equal(symlink(in(to, "blob"), in(from, ONE)), 0);
	open_model();
	assert_int_equal(model.all->data_bytes, 49);
}

static void test_open_one(void **state)
{
	size_t bytes;
	char *pack;

	(void)state;
	/* A folder without an index may have one file */
	assert_int_equal(st_model_open(from, &model, error, sizeof(error)), -ENOENT);
	assert_contains(error, "neither " ST_INDEX_NAME " nor " ST_MODEL_NAME);
	write_shard(ST_MODEL_NAME, header_two, 13, 0);
	open_model();
	assert_int_equal(model.nr, 1);
	assert_null(model.index);
	assert_string_equal(model.all->header, quoted(header_two));
	assert_string_equal(model.shards[0].path, in(from, ST_MODEL_NAME));
	st_model_free(&model);
	assert_int_equal(st_model_open(in(from, ST_MODEL_NAME), &model, error, sizeof(error)), 0);
	assert_int_equal(st_model_place(&model, 2).tensor, 2);
	assert_int_equal(st_model_pack(&model, &pack, &bytes, error, sizeof(error)), -EINVAL);
	assert_contains(error, "no index");
}

/* ---- what an index must not say --------------------------------------------- */

static void assert_refused(int err, const char *words, const char *more)
{
	struct st_model none = { .nr = 77 };

	error[0] = '\0';
	assert_int_equal(st_model_open(from, &none, error, sizeof(error)), err);
	assert_contains(error, words);
	assert_contains(error, more);
	assert_int_equal(none.nr, 77);
}

static void test_bad_index(void **state)
{
#define MAP(members) "{'weight_map':{" members "}}"
	static const struct {
		const char *text;
		const char *words;
	} bad[] = {
		{ "", "ends too early" },
		{ "{", "the index's JSON ends too early" },
		{ "[]", "the index's JSON is no object" },
		{ "{} {}", "the index is no JSON" },
		{ "{'metadata':{}}", "the index has no weight_map" },
		{ "{'weight_map':[]}", "one that is no object" },
		{ "{'weight_map':{}}", "weight_map is empty" },
		{ MAP("'a.w':1"), "no shard's name" },
		{ MAP("'a.w':{'a':'b'}"), "no shard's name" },
		{ MAP("'a.w':null"), "no shard's name" },
		{ MAP("'a.w':'../x.safetensors'"), "\"../x.safetensors\" is not the name" },
		{ MAP("'a.w':'/etc/x.safetensors'"), "without a path" },
		{ MAP("'a.w':'sub/x.safetensors'"), "without a path" },
		{ MAP("'a.w':'..\\/x.safetensors'"), "without a path" },
		{ MAP("'a.w':'..'"), "is not the name" },
		{ MAP("'a.w':''"), "is not the name" },
		{ MAP("'a.w':'.safetensors'"), "is not the name" },
		{ MAP("'a.w':'.x.safetensors'"), "is not the name" },
		{ MAP("'a.w':'passwd'"), "is not the name" },
		{ MAP("'a.w':'authorized_keys2'"), "is not the name" },
		{ MAP("'a.w':'x\\u0000.safetensors'"), "is not the name" },
		{ MAP("'a.w':'x\\n.safetensors'"), "is not the name" },
		{ MAP("'a.w':'" ONE "','a/q':'" ONE "','a.w':'" TWO "'"), "\"a.w\": this name appears twice" },
		{ MAP("'a.w':'" ONE "','\\u0061.w':'" ONE "'"), "appears twice" },
		{ "{'weight_map':{'a.w':'" ONE "'},'weight_map':{}}", "\"weight_map\": this name appears twice" },
		{ MAP("'a\\u0000':'" ONE "'"), "contains a zero byte" },
		{ MAP("'\\ud800':'" ONE "'"), "surrogate" },
		{ "{'a':NaN}", "NaN" },
		{ "{'weight_map':{'a':'b'},'metadata':[[[[[[[1]]]]]]]}", "is no JSON" },
		/* What index and shards say of each other */
		{ MAP(MAP_ONE MAP_TWO MAP_THREE ",'more':'none.safetensors'"),
		  "none.safetensors: it is not there" },
		{ MAP(MAP_ONE MAP_TWO MAP_THREE ",'d':'" THREE "'"),
		  "tensor \"d\": the index says that shard " THREE " has it, and it does not" },
		{ MAP(MAP_ONE MAP_TWO "'c.w':'" THREE "','c.n':'" THREE "'"),
		  "tensor \"c.f\": shard " THREE " has it, and the index does not name it" },
		{ MAP(MAP_ONE MAP_TWO "'c.f':'" THREE "','c.n':'" THREE "','c.w':'" TWO "'"),
		  "tensor \"c.w\": shard " THREE " has it, and the index says that " TWO " does" },
	};
	char many[8000] = "{'metadata':{'a':[";
	size_t i;

	(void)state;
	make_folder();
	for (i = 0; i < NR(bad); i++) {
		write_index(bad[i].text);
		error[0] = '\0';
		if (!st_model_open(from, &model, error, sizeof(error)))
			fail_msg("taken: %s", bad[i].text);
		assert_contains(error, bad[i].words);
		assert_contains(error, dir);
		assert_null(model.shards);
	}
	for (i = 0; i < 20; i++)
		strcat(many, i ? ",{}" : "{}");
	strcat(many, "]}}");
	write_index(many);
	assert_refused(-EINVAL, "23 objects and arrays", "16 are the most");
	write_index("{'a':'\1'}");
	assert_refused(-EINVAL, "is no JSON", "");
	write_file(in(from, ST_INDEX_NAME), "{\"a\":\0}", 7);
	assert_refused(-EINVAL, "contains a zero byte", "");
	write_file(in(from, ST_INDEX_NAME), "{'a':1}", 7);
	assert_refused(-EINVAL, "single quotes", "");
	/* Sparse, and not read */
	assert_int_equal(truncate(in(from, ST_INDEX_NAME), ST_INDEX_MAX + 1ll), 0);
	assert_refused(-EINVAL, "67108865 bytes, 67108864 are the most", "is this an index?");
	unlink(in(from, ST_INDEX_NAME));
	assert_int_equal(mkdir(in(from, ST_INDEX_NAME), 0700), 0);
	assert_refused(-EINVAL, "not a regular file", "");
	assert_int_equal(rmdir(in(from, ST_INDEX_NAME)), 0);
}

static void test_bad_shards(void **state)
{
	(void)state;
	make_folder();
	unlink(in(from, TWO));
	assert_refused(-ENOENT, TWO ": it is not there", "bring it there, or correct the index");
	write_file(in(from, TWO), "no shard, but some text", 23);
	assert_refused(-EINVAL, TWO, "is this a safetensors file?");
	write_shard(TWO, header_two, 12, 0);
	assert_refused(-EINVAL, TWO, "a truncated file?");
	/* The same in two shards, which the index gives to one of them, before or behind */
	write_shard(TWO, "{" T("a.w", "U8", "[1]", "[0,1]") "," T("b.w", "U8", "[1]", "[1,2]") ","
		    T("b.s", "U8", "[1]", "[2,3]") "," T("none", "U8", "[1]", "[3,4]") "}", 4, 0);
	assert_refused(-EINVAL, "tensor \"a.w\": shard " TWO " has it", "or another shard has it as well");
	write_shard(TWO, "{" T("c.w", "U8", "[1]", "[0,1]") "}", 1, 0);
	assert_refused(-EINVAL, "tensor \"c.w\": shard " TWO " has it", "that " THREE " does");
}

/* A tree of a long index takes a small multiple of it, and no tree is built of a crowded one */
static void test_memory(void **state)
{
	static const char *const crowds[] = {
		"\"%zx\":{},", "\"%zx\":[],", "\"%zx\":0,", "\"%zx\":\"\",", "'\"%zx':{},",
	};
	const size_t bytes = 2 << 20;
	char *text = malloc(bytes + 100);
	size_t at, i, k;

	(void)state;
	assert_non_null(text);
	make_folder();
	for (i = 0; i < NR(crowds); i++) {
		at = (size_t)sprintf(text, "{\"weight_map\":{");
		for (k = 0; at < bytes; k++)
			at += (size_t)sprintf(text + at, crowds[i], k);
		at += (size_t)sprintf(text + at, "\"zz\":0}}");
		write_file(in(from, ST_INDEX_NAME), text, at);
		fake.tree_bytes = 0;
		assert_refused(-EINVAL, "the index", "");
		assert_int_equal(fake.tree_bytes, 0);
	}
	/* A quote that is none hides what follows it from whoever takes it for one */
	at = (size_t)sprintf(text, "{'\"':[");
	while (at < bytes)
		at += (size_t)sprintf(text + at, "{},");
	at += (size_t)sprintf(text + at, "0]}");
	write_file(in(from, ST_INDEX_NAME), text, at);
	fake.tree_bytes = 0;
	assert_refused(-EINVAL, "single quotes", "");
	assert_int_equal(fake.tree_bytes, 0);
	at = (size_t)sprintf(text, "{\"weight_map\":{");
	for (k = 0; at < bytes; k++)
		at += (size_t)sprintf(text + at, "\"%zx\":\"x.safetensors\",", k);
	at += (size_t)sprintf(text + at, "\"zz\":0}}");
	write_file(in(from, ST_INDEX_NAME), text, at);
	assert_refused(-EINVAL, "no shard's name", "");
	assert_in_range(fake.tree_bytes, 1, 16 * bytes);
	free(text);
}

/* ---- packs ------------------------------------------------------------------ */

static void test_pack(void **state)
{
	struct st_model again;
	size_t bytes, i;
	char *pack;

	(void)state;
	make_folder();
	open_model();
	assert_int_equal(st_model_pack(&model, &pack, &bytes, error, sizeof(error)), 0);
	if (st_model_unpack(pack, bytes, &again, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(again.nr, 3);
	assert_int_equal(again.index_bytes, model.index_bytes);
	assert_memory_equal(again.index, model.index, model.index_bytes);
	assert_string_equal(again.all->header, model.all->header);
	for (i = 0; i < 3; i++) {
		assert_string_equal(again.shards[i].name, model.shards[i].name);
		assert_string_equal(again.shards[i].file.header, model.shards[i].file.header);
		assert_int_equal(again.shards[i].fd, -1);
	}
	st_model_free(&again);
	/* Cut anywhere, it is none */
	for (i = 0; i < bytes; i++) {
		char *cut = malloc(i + 1);

		memcpy(cut, pack, i);
		error[0] = '\0';
		assert_int_equal(st_model_unpack(cut, i, &again, error, sizeof(error)), -EINVAL);
		assert_true(*error);
		free(cut);
	}
	free(pack);
}

/* A pack of these files. *@bytes: its length */
static char *pack_of(const char *const *names, const char *const *texts, size_t nr, size_t *bytes)
{
	static char pack[65536];
	struct st_tensor tensors[8] = { 0 };
	struct st_file table;
	uint64_t length;
	size_t i;
	char *at;

	for (i = 0; i < nr; i++)
		tensors[i] = (struct st_tensor){
			.name = (char *)names[i], .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
			.dims = { strlen(texts[i]) },
		};
	assert_int_equal(st_make(tensors, nr, NULL, &table, error, sizeof(error)), 0);
	length = table.header_bytes;
	memcpy(pack, &length, 8);
	memcpy(pack + 8, table.header, length);
	at = pack + 8 + length;
	for (i = 0; i < nr; i++) {
		memcpy(at, quoted(texts[i]), strlen(texts[i]));
		at += strlen(texts[i]);
	}
	st_free(&table);
	*bytes = (size_t)(at - pack);
	return pack;
}

static void assert_no_pack(const char *const *names, const char *const *texts, size_t nr,
			   const char *words)
{
	struct st_model none;
	size_t bytes;
	const char *pack = pack_of(names, texts, nr, &bytes);

	error[0] = '\0';
	assert_int_equal(st_model_unpack(pack, bytes, &none, error, sizeof(error)), -EINVAL);
	assert_contains(error, words);
}

static void test_bad_pack(void **state)
{
	static const char x[] = "{" T("x", "U8", "[1]", "[0,1]") "}";
	static const char y[] = "{" T("y", "U8", "[1]", "[0,1]") "}";
	static const char of_both[] = "{'weight_map':{'x':'x.safetensors','y':'y.safetensors'}}";
	const char *names[] = { ST_INDEX_NAME, "x.safetensors", "y.safetensors" };
	const char *texts[] = { of_both, x, y };
	struct st_model both;
	size_t bytes;
	char *pack;

	(void)state;
	pack = pack_of(names, texts, 3, &bytes);
	assert_int_equal(st_model_unpack(pack, bytes, &both, error, sizeof(error)), 0);
	st_model_free(&both);
	assert_no_pack(names + 1, texts + 1, 2, "has no index");
	assert_no_pack(NULL, NULL, 0, "has no index");
	assert_no_pack(names, texts, 2, "not those that their index names");
	texts[0] = "{'weight_map':{'x':'x.safetensors'}}";
	assert_no_pack(names, texts, 3, "not those that their index names");
	texts[0] = of_both;
	names[2] = "z.safetensors";
	assert_no_pack(names, texts, 3, "not those that their index names");
	/* Neither does a name that leaves the folder come by an index that has it */
	names[2] = "../z.safetensors";
	texts[0] = "{'weight_map':{'x':'x.safetensors','y':'../z.safetensors'}}";
	assert_no_pack(names, texts, 3, "is not the name of a .safetensors file");
	names[2] = "y.safetensors";
	texts[0] = of_both;
	texts[2] = x;
	assert_no_pack(names, texts, 3, "tensor \"x\": shard y.safetensors has it");
	texts[2] = "{}";
	assert_no_pack(names, texts, 3, "tensor \"y\": the index says that shard y.safetensors has it");
	texts[2] = "no header";
	assert_no_pack(names, texts, 3, "shard y.safetensors: the header does not begin with {");
}

/* An index as long as no file's may be, in a pack that may */
static void test_long_pack(void **state)
{
	struct st_tensor index = {
		.name = ST_INDEX_NAME, .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
		.dims = { ST_INDEX_MAX + 1ull },
	};
	struct st_model none;
	struct st_file table;
	uint64_t length;
	size_t bytes;
	char *pack;

	(void)state;
	assert_int_equal(st_make(&index, 1, NULL, &table, error, sizeof(error)), 0);
	length = table.header_bytes;
	bytes = 8 + length + ST_INDEX_MAX + 1;
	pack = malloc(bytes);
	assert_non_null(pack);
	memset(pack, ' ', bytes);
	memcpy(pack, &length, 8);
	memcpy(pack + 8, table.header, length);
	assert_int_equal(st_model_unpack(pack, bytes, &none, error, sizeof(error)), -EINVAL);
	assert_contains(error, "67108865 bytes, 67108864 are the most");
	st_free(&table);
	free(pack);
}

/* ---- a part of a model ------------------------------------------------------ */

static bool is_wanted(void *arg, const char *name)
{
	return strchr(arg, *name);
}

static void test_filter(void **state)
{
	struct json_object *root, *value;
	size_t bytes;
	char *pack;

	(void)state;
	make_folder();
	open_model();
	assert_int_equal(st_model_filter(&model, is_wanted, "ac", error, sizeof(error)), 0);
	assert_int_equal(model.nr, 2);
	assert_string_equal(model.shards[1].name, THREE);
	/* All of these stay: so does each byte of their headers */
	assert_string_equal(model.shards[0].file.header, quoted(header_one));
	assert_int_equal(model.all->data_bytes, 36);
	root = json_tokener_parse(model.index);
	assert_true(json_object_object_get_ex(root, "metadata", &value));
	assert_int_equal(json_object_get_int(json_object_object_get(value, "total_size")), 36);
	assert_int_equal(json_object_array_length(json_object_object_get(value, "by")), 2);
	assert_true(json_object_object_get_ex(root, "weight_map", &value));
	assert_int_equal(json_object_object_length(value), 5);
	assert_string_equal(json_object_get_string(json_object_object_get(value, "a/q")), ONE);
	json_object_put(root);
	/* It is a model as any other */
	assert_int_equal(st_model_pack(&model, &pack, &bytes, error, sizeof(error)), 0);
	st_model_free(&model);
	if (st_model_unpack(pack, bytes, &model, error, sizeof(error)))
		fail_msg("%s", error);
	free(pack);
	assert_int_equal(st_model_filter(&model, is_wanted, "x", error, sizeof(error)), -ENOENT);
	/* What an index does not have is not added */
	write_index("{'metadata':{},'weight_map':{" MAP_ONE MAP_TWO MAP_THREE "}}");
	open_model();
	assert_int_equal(st_model_filter(&model, is_wanted, "b", error, sizeof(error)), 0);
	assert_null(strstr(model.index, "total_size"));
	assert_contains(model.index, "\"metadata\"");
}

static void test_filter_places(void **state)
{
	struct st_shard *shard;
	uint64_t data;

	(void)state;
	make_folder();
	write_shard(ST_MODEL_NAME, header_three, 9, 0);
	assert_int_equal(st_model_open(in(from, ST_MODEL_NAME), &model, error, sizeof(error)), 0);
	shard = &model.shards[0];
	data = st_data_offset(&shard->file);
	free(model.shards[0].file.tensors[0].name);
	model.shards[0].file.tensors[0].name = strdup("x");
	assert_int_equal(st_model_filter(&model, is_wanted, "c", error, sizeof(error)), 0);
	assert_ptr_equal(model.all, &shard->file);
	assert_int_equal(model.all->nr, 2);
	/* In the new header, and in the old file */
	assert_string_equal(model.all->tensors[1].name, "c.f");
	assert_string_equal(model.all->tensors[1].dtype, "F6_E2M3");
	assert_int_equal(model.all->tensors[1].begin, 2);
	assert_int_equal(st_shard_at(shard, 1), data + 6);
	assert_contains(model.all->header, "third");
}

/* ---- serve and fetch -------------------------------------------------------- */

static void assert_same(const char *a, const char *b)
{
	size_t nx, ny;
	char *x = read_file(a, &nx), *y = read_file(b, &ny);

	assert_true(nx > 0);
	assert_int_equal(nx, ny);
	assert_memory_equal(x, y, nx);
}

static const char *folder(void)
{
	static char name[320];

	snprintf(name, sizeof(name), "%s/", to);
	return name;
}

static void assert_bytes(const char *name, const char *bytes, size_t nr)
{
	struct st_model got;
	const struct st_tensor *tensor;
	char content[64];

	if (st_model_open(file, &got, error, sizeof(error)))
		fail_msg("%s", error);
	tensor = st_find(got.all, name);
	assert_non_null(tensor);
	assert_int_equal(tensor->bytes, nr);
	assert_int_equal(pread(got.shards[0].fd, content, nr,
			       (off_t)(st_data_offset(got.all) + tensor->begin)), nr);
	assert_memory_equal(content, bytes, nr);
	st_model_free(&got);
}

static void test_shards(void **state)
{
	(void)state;
	make_folder();
	server_start_with((char *[]){ from, "--exit-after", "1", NULL }, 10);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_OK);
	assert_contains(text, "fetched 8 tensors, 49 bytes");
	assert_int_equal(files_in(to), 4);
	assert_same(in(from, ONE), in(to, ONE));
	assert_same(in(from, TWO), in(to, TWO));
	assert_same(in(from, THREE), in(to, THREE));
	assert_same(in(from, ST_INDEX_NAME), in(to, ST_INDEX_NAME));
	/* One file, of the same tensors */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file), EXIT_OK);
	assert_bytes("a/q", "\x18\x19\x1a", 3);
	assert_bytes("b.s", "\x3c\x3d\x3e", 3);
	assert_bytes("c.w", "\x64\x65\x66\x67", 4);
	/* Some of them, by the client */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file, "--filter", "c.[wf]",
			     "--filter", "a*q"), EXIT_OK);
	assert_contains(text, "fetched 3 tensors, 10 bytes");
	assert_bytes("c.f", "\x6a\x6b\x6c", 3);
	assert_bytes("a/q", "\x18\x19\x1a", 3);
	remove_folder(to);
	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder(), "--filter",
			     "[abn]*"), EXIT_OK);
	assert_int_equal(files_in(to), 3);
	assert_same(in(from, TWO), in(to, TWO));
	if (st_model_open(to, &model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(model.all->nr, 5);
	/* Nothing matches: nothing is written */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file, "--filter", "d*"),
			 EXIT_FAILED);
	assert_contains(messages, "none of its 8 tensors matches --filter d*");
	assert_bytes("c.f", "\x6a\x6b\x6c", 3);
	server_end_with(EXIT_OK);
}

/* What only a header tells is not in meta-data */
static void test_no_dtype(void **state)
{
	(void)state;
	make_folder();
	server_start_with((char *[]){ from, "--exit-after", "1", NULL }, 10);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "b.s", "-o", file), EXIT_FAILED);
	assert_contains(messages, "--all --filter 'b.s'");
	assert_int_equal(access(file, F_OK), -1);
	server_end_with(EXIT_OK);
}

static void test_serve_filter(void **state)
{
	(void)state;
	make_folder();
	server_start_with((char *[]){ from, "--exit-after", "1", "--filter", "b.*", "--filter",
				      "c.n", NULL }, 5);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file), EXIT_OK);
	assert_contains(text, "fetched 3 tensors, 15 bytes");
	assert_bytes("c.n", "\x68\x69", 2);
	assert_bytes("b.s", "\x3c\x3d\x3e", 3);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_OK);
	assert_int_equal(files_in(to), 3);
	if (st_model_open(to, &model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(model.nr, 2);
	assert_int_equal(model.all->nr, 3);
	server_end_with(EXIT_OK);
	assert_int_equal(RUN(cmd_serve, from, "--filter", "d*", "--filter", "e*"), EXIT_FAILED);
	assert_contains(messages, "none of its 8 tensors matches --filter d*, nor another one");
}

/* A peer without shards, new or old, has one file for a folder */
static void test_one_file(void **state)
{
	(void)state;
	write_shard("one", header_two, 13, 0);
	server_start_with((char *[]){ (char *)in(from, "one"), "--exit-after", "1", NULL }, 4);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_OK);
	assert_int_equal(files_in(to), 1);
	assert_same(in(from, "one"), in(to, ST_MODEL_NAME));
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file, "--filter", "*s"), EXIT_OK);
	assert_bytes("b.s", "\x0a\x0b\x0c", 3);
	server_end_with(EXIT_OK);
}

/* From the files' own pages; what they do not have comes from elsewhere */
static void test_in_place(void **state)
{
	(void)state;
	make_folder();
	server_start_with((char *[]){ from, "--exit-after", "1", "--memory", "file", NULL }, 10);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_OK);
	assert_same(in(from, ONE), in(to, ONE));
	assert_same(in(from, TWO), in(to, TWO));
	assert_same(in(from, THREE), in(to, THREE));
	server_end_with(EXIT_OK);
	server_start_with((char *[]){ (char *)in(from, THREE), "--exit-after", "1", "--memory",
				      "file", "--filter", "*f", NULL }, 2);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", file), EXIT_OK);
	assert_bytes("c.f", "\x6a\x6b\x6c", 3);
	server_end_with(EXIT_OK);
}

static void test_output(void **state)
{
	char missing[320];
	struct stat st;

	(void)state;
	make_folder();
	snprintf(missing, sizeof(missing), "%s/missing/", dir);
	server_start_with((char *[]){ from, "--exit-after", "1", NULL }, 10);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", missing), EXIT_FAILED);
	assert_contains(messages, "make the folder first");
	write_file(file, "x", 1);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)in(dir, "file/")),
			 EXIT_FAILED);
	assert_contains(messages, "file/");
	/* The last one of them cannot be written: none is */
	assert_int_equal(mkdir(in(to, ST_INDEX_NAME), 0700), 0);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_FAILED);
	assert_contains(messages, "no regular file");
	assert_int_equal(files_in(to), 1);
	assert_int_equal(rmdir(in(to, ST_INDEX_NAME)), 0);
	/* Where content has names, none of them stays either */
	fake.no_tmpfile = true;
	assert_int_equal(mkdir(in(to, THREE), 0700), 0);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_FAILED);
	assert_int_equal(files_in(to), 1);
	assert_int_equal(rmdir(in(to, THREE)), 0);
	/* A file that is there keeps its mode */
	write_file(in(to, TWO), "x", 1);
	assert_int_equal(chmod(in(to, TWO), 0640), 0);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_OK);
	assert_int_equal(files_in(to), 4);
	assert_same(in(from, TWO), in(to, TWO));
	assert_int_equal(stat(in(to, TWO), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	server_end_with(EXIT_OK);
}

static void publish(struct rdmatensor *rt, const char *name, const struct rdmatensor_pool *pool,
		    uint64_t at, uint64_t bytes, uint64_t dim)
{
	struct rdmatensor_op op;

	rdmatensor_prep_publish(&op, name, 0, pool->id, at, bytes, RDMATENSOR_DT_STRING, !!dim,
				&dim, 0, 0);
	assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
}

/* Shards of a peer are as little to be trusted as those of a folder */
static void test_hostile_shards(void **state)
{
	static const char header[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
	const char *names[] = { ST_INDEX_NAME, "../x.safetensors" };
	const char *texts[] = { "{'weight_map':{'x':'../x.safetensors'}}",
				"{" T("x", "U8", "[1]", "[0,1]") "}" };
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	size_t len;
	uint64_t at;
	char *pack;

	(void)state;
	rdmatensor_start_init(&start, "hostile");
	assert_int_equal(rdmatensor_open(FAKE_PATH, &rt), 0);
	assert_int_equal(rdmatensor_start(rt, &start), 0);
	assert_int_equal(rdmatensor_pool_create(rt, 4096, &pool), 0);
	assert_int_equal(rdmatensor_pool_alloc(rt, &pool, 4096, &at), 0);
	pack = pack_of(names, texts, 2, &len);
	memcpy((char *)pool.base + at, header, sizeof(header));
	memcpy((char *)pool.base + at + 1024, pack, len);
	publish(rt, SHARDS_NAME, &pool, at + 1024, len, 0);
	publish(rt, INDEX_NAME, &pool, at, sizeof(header) - 1, len);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_FAILED);
	assert_contains(messages, "shards of 10.0.0.1: tensor \"x\": its shard \"../x.safetensors\"");
	assert_int_equal(files_in(to), 0);
	assert_int_equal(files_in(dir), 2);
	/* More than any pack has */
	assert_int_equal(rdmatensor_withdraw(rt, INDEX_NAME, 0), 0);
	publish(rt, INDEX_NAME, &pool, at, sizeof(header) - 1, ST_PACK_MAX + 1ull);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", (char *)folder()), EXIT_FAILED);
	assert_contains(messages, "200000001 bytes are not their headers");
	rdmatensor_close(rt);
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_fetch, "p", "x", "-o", (char *)folder()), EXIT_USAGE);
	assert_contains(messages, "is refused with names");
	assert_int_equal(RUN(cmd_fetch, "p", "x", "-o", "f", "--filter", "a"), EXIT_USAGE);
	assert_contains(messages, "--filter is refused with names");
	assert_int_equal(RUN(cmd_fetch, "p", "-a", "-o", "f", "--filter", ""), EXIT_USAGE);
	assert_contains(messages, "no tensor has an empty name");
	/* A name that serve needs itself */
	write_shard("one.safetensors", "{" T("rdmatensor.shards", "U8", "[1]", "[0,1]") "}", 1, 0);
	write_index("{'weight_map':{'rdmatensor.shards':'one.safetensors'}}");
	assert_int_equal(RUN(cmd_serve, from), EXIT_FAILED);
	assert_contains(messages, "\"rdmatensor.shards\": this name is reserved");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_open),
		test(test_open_one),
		test(test_bad_index),
		test(test_bad_shards),
		test(test_memory),
		test(test_pack),
		test(test_bad_pack),
		test(test_long_pack),
		test(test_filter),
		test(test_filter_places),
		test(test_shards),
		test(test_no_dtype),
		test(test_serve_filter),
		test(test_one_file),
		test(test_in_place),
		test(test_output),
		test(test_hostile_shards),
		test(test_usage),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
