// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a peer tells `fetch --all`, and `fetch NAME...`: an index, which is the header of a
 * safetensors file, or meta-data. The first byte of the input says how fetches end, the
 * others are the text. Whatever comes:
 * - what is refused is told, names what is wrong, and leaves nothing;
 * - of what is taken the tensors lie one behind the other, each as long as its shape says;
 *   st_make() makes the same tensors of them, and the file that st_write_header() writes is
 *   read as the same; each has its own place in the pool;
 * - the JSON library's tree takes a small multiple of what a right one of that length does.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "peer.h"
#include "tensors.h"
#include "text.h"
#include "tool/cmd/fetch/parts.h"
#include "tool/common/published.h"

/* A header of the shortest tensors takes about 31 bytes for each of its own */
#define TREE_MOST(_bytes) (64 * (_bytes) + 16384)
/* A file that is written to memory, without its content */
#define FILE_MAX (UINT64_C(1) << 40)

static unsigned int kind_index, kind_tensors, kind_meta, kind_file, kind_prepared, kind_probe,
	kind_fetch, kind_dead, kind_waited, kind_larger, kind_opaque;

/* Headers as seed_text() takes them: with ' for " */
#define TENSOR(_shape, _offsets) "{'dtype':'U8','shape':[" _shape "],'data_offsets':[" _offsets "]}"
#define BYTE TENSOR("", "0,1")
#define OF(_dtype, _shape, _offsets) \
	"{'a':{'dtype':" _dtype ",'shape':" _shape ",'data_offsets':" _offsets "}}"
#define ONES "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
/* A name that can be changed in many places, while what is refused stays so */
#define LONG "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

/* Words of each refusal, and a header that gets it, but for those of seed_others() */
static const struct {
	const char *why;
	const char *header;
} refusals[] = {
	{ "are not a safetensors header", "" },
	{ "does not begin with {", "[]" },
	{ "contains a zero byte", NULL },
	{ "ends too early", "{'a':" },
	{ "the header is no JSON", "{'a' 1}" },
	{ "it is no object", "{'a':1}" },
	{ "it has no dtype, or", "{'a':{'shape':[],'data_offsets':[0,1],'xxxxxxxxxxxx':1}}" },
	{ "is unknown", OF("'F31'", "[]", "[0,1]") },
	{ "it has no shape, or", OF("'U8'", "11", "[0,1]") },
	{ "dims, 16 are the most", "{'a':" TENSOR(ONES "1", "0,1") "}" },
	{ "of its shape is no whole number", OF("'U8'", "[-1]", "[0,1]") },
	{ "its shape is larger than 64 bits", OF("'U8'", "[4294967296,4294967296]", "[0,1]") },
	{ "it has no data_offsets, or", OF("'U8'", "[]", "[0,1,2]") },
	{ "its data_offsets are no whole", OF("'U8'", "[]", "[0,1.5]") },
	{ "its data_offsets are reversed", OF("'U8'", "[]", "[1,0]") },
	{ "its data_offsets hold", OF("'U8'", "[]", "[0,2]") },
	{ "are no whole number of bytes", OF("'F4'", "[3]", "[0,1]") },
	{ "its name is empty", "{'':" BYTE "}" },
	{ "bytes, 512 are the most", NULL },
	{ "overlaps", "{'" LONG "':" TENSOR("2", "0,2") ",'" LONG "b':" TENSOR("2", "1,3") "}" },
	{ "belong to no tensor", "{'a':" TENSOR("", "1,2") "}" },
	{ "__metadata__: it is no object", "{'__metadata__':1}" },
	{ "is no string", "{'__metadata__':{'a':1}}" },
	{ "it has a member that is no string", "{'__metadata__':{'a':[]}}" },
	{ "appears twice", "{'a':" BYTE ",'\\u0061':" TENSOR("", "1,2") "}" },
	{ "its name contains a zero byte", "{'a\\u0000':" BYTE "}" },
	{ "a control character in a string", "{'a\nb':" BYTE "}" },
	{ "one half of a surrogate pair", "{'\\ud800':" BYTE "}" },
	{ "an array of it contains arrays", OF("'U8'", "[[]]", "[0,1]") },
	{ "it has more than 4 arrays",
	  "{'a':{'a':[],'b':[],'c':[],'d':[],'e':[],'shape':[],'data_offsets':[0,1]}}" },
	{ "more than 64 members", "{'a':" TENSOR(ONES ONES ONES ONES "1", "0,1") "}" },
	{ "it has no dtype, no shape or no", "{'a':{}}" },
};

static unsigned int refusal_kinds[NR(refusals)];

void fuzz_init(void)
{
	size_t i;

	kind_index = to_reach("an index is taken");
	kind_tensors = to_reach("one of several tensors is taken");
	kind_meta = to_reach("meta-data are taken");
	kind_file = to_reach("a file is written and read");
	kind_prepared = to_reach("each tensor gets a place");
	kind_opaque = to_reach("opaque tensors are taken");
	kind_larger = to_reach("tensors larger than any pool");
	kind_probe = to_reach("a probe fails");
	kind_fetch = to_reach("the fetch of an index fails");
	kind_dead = to_reach("a tensor is dead");
	kind_waited = to_reach("the index was waited for");
	for (i = 0; i < NR(refusals); i++)
		refusal_kinds[i] = to_reach("%s", refusals[i].why);
}

static void check_made(const struct st_file *file)
{
	char error[ST_ERROR_MAX];
	struct st_file made;
	size_t i;

	for (i = 0; i < file->nr; i++)
		if (is_opaque(&file->tensors[i]))
			reached(kind_opaque);
	HOLDS(!st_make(file->tensors, file->nr, NULL, &made, error, sizeof(error)));
	check_tensors(&made);
	check_same(file, &made);
	st_free(&made);
}

static void check_written(const struct st_file *file)
{
	char error[ST_ERROR_MAX], path[64];
	int fd = memfd_create("index", MFD_CLOEXEC), again;
	struct st_file read;

	HOLDS(fd >= 0);
	if (st_data_offset(file) + file->data_bytes <= FILE_MAX) {
		HOLDS(!st_write_header(fd, file));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		HOLDS(!st_open(path, &read, &again, error, sizeof(error)));
		HOLDS(read.header_bytes == file->header_bytes &&
		      !memcmp(read.header, file->header, file->header_bytes));
		check_same(file, &read);
		st_free(&read);
		close(again);
		reached(kind_file);
	}
	close(fd);
}

/* Places do not overlap, and are in the pool */
static void check_places(struct fetch *fetch, int ret)
{
	uint64_t end = 0;
	size_t i;

	if (ret) {
		HOLDS(fetch->file->data_bytes > INT64_MAX / 2);
		reached(kind_larger);
		return;
	}
	for (i = 0; i < fetch->file->nr; i++) {
		HOLDS(fetch->offsets[i] >= end && fetch->offsets[i] % RDMATENSOR_REGION_ALIGN == 0);
		end = fetch->offsets[i] + fetch->file->tensors[i].bytes;
		HOLDS(end >= fetch->offsets[i] && end <= peer.pool_bytes);
	}
	rdmatensor_pool_destroy(NULL, &fetch->store.pool);
	reached(kind_prepared);
}

static void check_taken(struct fetch *fetch)
{
	struct said said;
	int ret;

	check_tensors(fetch->file);
	check_made(fetch->file);
	check_written(fetch->file);
	said_begin(&said);
	ret = fetch_prepare(fetch);
	said_end(&said);
	HOLDS(!ret == !said.err_len);
	check_places(fetch, ret);
	said_free(&said);
}

static bool has_words(const char *words)
{
	return peer.text && memmem(peer.text, peer.text_bytes, words, strlen(words));
}

static void check_refused(const struct fetch *fetch, const char *text)
{
	char error[ST_ERROR_MAX];
	struct st_file file;
	size_t i;

	HOLDS(!fetch->file && !fetch->model.nr);
	HOLDS(!strncmp(text, "rdmatensor: error: ", 19) && strlen(text) > 24);
	check_clean(text);
	/* A name may have these words, too: libFuzzer looks for them */
	for (i = 0; i < NR(refusals); i++)
		if (strstr(text, refusals[i].why) && !has_words(refusals[i].why))
			reached(refusal_kinds[i]);
	if (!peer.text || peer.fetch || peer.dead || (peer.probe && peer.probe != -EMSGSIZE))
		return;
	HOLDS(st_parse(peer.text, peer.text_bytes - peer.less, UINT64_MAX, &file, error,
		       sizeof(error)) == -EINVAL);
}

/* The same text, of a file that ends too early or too late */
static void check_bounds(const struct st_file *file)
{
	char error[ST_ERROR_MAX];
	struct st_file other;

	if (file->data_bytes)
		HOLDS(st_parse(file->header, file->header_bytes, file->data_bytes - 1, &other,
			       error, sizeof(error)) == -EINVAL && *error);
	HOLDS(st_parse(file->header, file->header_bytes, file->data_bytes + 1, &other, error,
		       sizeof(error)) == -EINVAL && *error);
}

static void set_peer(const uint8_t *data, size_t size)
{
	uint8_t how = size ? *data : 0;

	memset(&peer, 0, sizeof(peer));
	peer.data = data + !!size;
	peer.size = size - !!size;
	if (!(how & 0x80)) {
		peer.text = (const char *)peer.data;
		peer.text_bytes = peer.size;
	}
	switch (how & 0x0f) {
	case 1:
		peer.probe = -ETIMEDOUT;
		break;
	case 2:
		peer.probe = -ECONNRESET;
		break;
	case 3:
		peer.dead = true;
		peer.probe = -EMSGSIZE;
		break;
	case 4:
		peer.fetch = -ENOENT;
		peer.probe = -EMSGSIZE;
		break;
	case 5:
		/* Another one came in between */
		peer.less = peer.size / 2;
		peer.probe = -EMSGSIZE;
		break;
	case 6:
		/* It was longer in the meantime */
		peer.fetch = -EMSGSIZE;
		peer.probe = -EMSGSIZE;
		break;
	case 7:
		peer.probe = 0;
		break;
	case 10:
		/* It offers one while it is waited for */
		peer.late = true;
		peer.probe = -EMSGSIZE;
		break;
	default:
		peer.probe = -EMSGSIZE;
	}
}

/* What is said once the first part of the time has gone by, and only then; the rest of it */
static const char *check_waited(const char *text, bool waited)
{
	static const char warning[] = "rdmatensor: warning: ";
	const char *end = strchr(text, '\n');

	if (!waited) {
		HOLDS(strncmp(text, warning, sizeof(warning) - 1) != 0);
		return text;
	}
	HOLDS(!strncmp(text, warning, sizeof(warning) - 1) && end);
	HOLDS(strstr(text, "offers no model yet") && strstr(text, "offers no model yet") < end);
	reached(kind_waited);
	return end + 1;
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static char *const names[] = { "a", "b", "c", "layer/weights", "d\"e", "\303\244" };
	struct peer one = { .name = "peer" };
	struct fetch fetch = {
		.peer = (char *)"peer",
		.peers = { .all = &one, .nr = 1 },
		.in_flight = 64,
	};
	bool meta, waited;
	struct said said;
	const char *text;
	int ret;

	set_peer(data, size);
	meta = !peer.text;
	waited = !meta && (peer.late || peer.probe == -ETIMEDOUT);
	said_begin(&said);
	ret = meta ? fetch_meta(&fetch, (char **)names, 1 + (size ? data[0] >> 4 & 7 : 0) % NR(names)) :
		     fetch_index(&fetch);
	said_end(&said);
	HOLDS(!peer.pools && !said.out_len);
	HOLDS(!peer.tree_bytes || peer.tree_bytes <= TREE_MOST(peer.tree_of));
	text = check_waited(said.err_len ? said.err : "", waited);
	HOLDS(ret ? ret == EXIT_FAILED && *text : !*text);
	if (ret) {
		check_refused(&fetch, text);
		if (peer.dead && strstr(said.err, "it is dead"))
			reached(kind_dead);
		if (peer.probe && peer.probe != -EMSGSIZE)
			reached(kind_probe);
		if (!meta && peer.fetch && strstr(said.err, INDEX_NAME))
			reached(kind_fetch);
	} else {
		reached(meta ? kind_meta : kind_index);
		if (!meta) {
			HOLDS(fetch.file->header_bytes == peer.text_bytes - peer.less);
			HOLDS(!memcmp(fetch.file->header, peer.text, fetch.file->header_bytes));
		}
		if (fetch.file->nr > 1)
			reached(kind_tensors);
		check_bounds(fetch.file);
		check_taken(&fetch);
		HOLDS(!peer.pools);
	}
	said_free(&said);
	/* By which another worker is judged: as the peer has said it, or nothing */
	HOLDS(one.index ? !meta && one.index_bytes && !memcmp(one.index, peer.text, one.index_bytes) :
			  ret || meta);
	free(one.index);
	st_model_free(&fetch.model);
	free(fetch.offsets);
}

static void seed_made(void)
{
	const char *const metadata[] = { "format", "pt", "by", "\303\244 \"q\"", NULL };
	struct st_tensor tensors[] = {
		{ .name = "scalar", .data_type = RDMATENSOR_DT_FLOAT },
		{ .name = "none", .data_type = RDMATENSOR_DT_HALF, .ndims = 2, .dims = { 0, 7 } },
		{ .name = "a/b.c", .data_type = RDMATENSOR_DT_BFLOAT16, .ndims = 1, .dims = { 3 } },
		{ .name = "\303\244\n\"", .data_type = RDMATENSOR_DT_INT64, .ndims = 3,
		  .dims = { 2, 3, 4 } },
		{ .name = "deep", .data_type = RDMATENSOR_DT_BOOL, .ndims = 16,
		  .dims = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 5 } },
		{ .name = "large", .data_type = RDMATENSOR_DT_UINT8, .ndims = 2,
		  .dims = { 1u << 31, 1u << 31 } },
		{ .name = "as long as can be told", .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
		  .dims = { (1ull << 62) - 300 } },
	};
	char error[ST_ERROR_MAX];
	struct st_file file;
	size_t nr, i;

	for (nr = 0; nr <= NR(tensors); nr++) {
		HOLDS(!st_make(tensors, nr, nr % 2 ? metadata : NULL, &file, error, sizeof(error)));
		for (i = 0; i < 8; i++)
			seed_with((uint8_t)i, file.header, file.header_bytes);
		st_free(&file);
	}
}

/* What takes most memory in a tree */
static void seed_crowds(void)
{
	static const char *const crowds[][3] = {
		{ "{'a':{", "'%02zx':{},", "'e':1}}" }, { "{'a':{", "'%02zx':[],", "'e':1}}" },
		{ "{", "'%02zx':{},", "'e':1}" }, { "{'a':{'shape':[", "%zu,", "1]}}" },
		{ "{'__metadata__':{", "'%02zx':{},", "'e':1}}" },
		{ "{'a':{'shape':{", "'%02zx':1,", "'e':1}}}" },
	};
	char text[3900];
	size_t i, k, at;

	for (i = 0; i < NR(crowds); i++) {
		at = (size_t)sprintf(text, "%s", crowds[i][0]);
		for (k = 0; at < sizeof(text) - 40; k++)
			at += (size_t)sprintf(text + at, crowds[i][1], k);
		strcpy(text + at, crowds[i][2]);
		seed_text(0, text);
	}
}

static void seed_others(void)
{
	static const uint8_t meta[] = {
		1, 2, 3, 4, 3, 0, 9, 1, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 4, 1, 5
	};
	static const char byte[] = "{'a':" BYTE "}", zero[] = "{\"a\":\0}";
	char text[1024];
	uint8_t how;

	seed_with(0, zero, sizeof(zero));
	seed_text(0, "{'a':{'dtype':'F4','shape':[4],'data_offsets':[0,2]},"
		       "'b':{'dtype':'F6_E2M3','shape':[2,4],'data_offsets':[2,8]}}");
	/* A name that is too long, and spaces that are not there when it is fetched */
	snprintf(text, sizeof(text), "{'%0513d':%s}", 0, BYTE);
	seed_text(0, text);
	snprintf(text, sizeof(text), "%s%*s", byte, (int)sizeof(byte) - 1, "");
	seed_text(10, text);
	for (how = 0; how < 8; how++) {
		seed_text(how, text);
		seed_with(0x80 | how, meta, sizeof(meta));
		seed_with(0xd0 | how, meta, sizeof(meta));
	}
}

void fuzz_seeds(void)
{
	size_t i;

	for (i = 0; i < NR(refusals); i++)
		if (refusals[i].header)
			seed_text(0, refusals[i].header);
	seed_others();
	seed_crowds();
	seed_made();
}
