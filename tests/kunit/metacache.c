// SPDX-License-Identifier: GPL-2.0
/* The meta cache: one entry a name, what it learns, and the bound on names. */
#include <linux/err.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "core/metacache.h"

static const struct rdmatensor_meta floats = {
	.data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 24, .dims = { 2, 3 },
};

static const struct rdmatensor_meta dead = {
	.data_type = RDMATENSOR_DT_INT64, .is_dead = 1,
};

static struct rdmatensor_metacache *new_cache(struct kunit *test, u32 max_entries)
{
	struct rdmatensor_metacache *cache = rdmatensor_metacache_alloc(max_entries);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cache);
	return cache;
}

static struct rdmatensor_metacache_entry *get(struct kunit *test,
					      struct rdmatensor_metacache *cache,
					      const void *name, u16 name_len)
{
	struct rdmatensor_metacache_entry *entry =
		rdmatensor_metacache_get(cache, name, name_len);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, entry);
	return entry;
}

static void expect_known(struct kunit *test, struct rdmatensor_metacache_entry *entry,
			 const struct rdmatensor_meta *meta)
{
	struct rdmatensor_meta read;

	memset(&read, 0xa5, sizeof(read));
	KUNIT_EXPECT_EQ(test, rdmatensor_metacache_read(entry, &read), !!meta);
	if (meta)
		KUNIT_EXPECT_TRUE(test, rdmatensor_meta_equal(&read, meta));
	else
		KUNIT_EXPECT_EQ(test, read.data_type, RDMATENSOR_DT_INVALID);
}

static void learns(struct kunit *test)
{
	static const struct rdmatensor_meta nothing = {};
	struct rdmatensor_metacache *cache = new_cache(test, 10);
	struct rdmatensor_metacache_entry *entry = get(test, cache, "a", 1);

	expect_known(test, entry, NULL);
	rdmatensor_metacache_learn(entry, &floats);
	expect_known(test, entry, &floats);
	rdmatensor_metacache_learn(entry, &dead);
	expect_known(test, entry, &dead);
	rdmatensor_metacache_put(cache, entry);

	entry = get(test, cache, "a", 1);
	expect_known(test, entry, &dead);
	rdmatensor_metacache_learn(entry, &nothing);
	expect_known(test, entry, NULL);
	rdmatensor_metacache_put(cache, entry);
	rdmatensor_metacache_free(cache);
}

static void getters_share(struct kunit *test)
{
	struct rdmatensor_metacache *cache = new_cache(test, 10);
	struct rdmatensor_metacache_entry *a = get(test, cache, "name", 4);
	struct rdmatensor_metacache_entry *b = get(test, cache, "name", 4);

	KUNIT_EXPECT_PTR_EQ(test, a, b);
	rdmatensor_metacache_put(cache, a);
	rdmatensor_metacache_learn(b, &floats);
	rdmatensor_metacache_put(cache, b);
	a = get(test, cache, "name", 4);
	expect_known(test, a, &floats);
	rdmatensor_metacache_put(cache, a);
	rdmatensor_metacache_free(cache);
}

static void names(struct kunit *test)
{
	static const struct {
		const char *name;
		u16 len;
	} all[] = {
		{ "a", 1 }, { "ab", 2 }, { "a\0", 2 }, { "a\0b", 3 }, { "\0", 1 }, { "b", 1 },
		{ "\0\0", 2 }, { "a\0c", 3 },
	};
	struct rdmatensor_metacache_entry *entries[ARRAY_SIZE(all)];
	struct rdmatensor_metacache *cache = new_cache(test, 100);
	struct rdmatensor_meta meta = floats;
	const char *name;
	unsigned int i;
	u16 len;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		entries[i] = get(test, cache, all[i].name, all[i].len);
		expect_known(test, entries[i], NULL);
		meta.dims[0] = i;
		rdmatensor_metacache_learn(entries[i], &meta);
	}
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		meta.dims[0] = i;
		expect_known(test, entries[i], &meta);
		name = rdmatensor_metacache_name(entries[i], &len);
		KUNIT_EXPECT_EQ(test, len, all[i].len);
		KUNIT_EXPECT_PTR_NE(test, name, all[i].name);
		KUNIT_EXPECT_EQ(test, memcmp(name, all[i].name, all[i].len), 0);
		rdmatensor_metacache_put(cache, entries[i]);
	}
	rdmatensor_metacache_free(cache);
}

/* Names of zeros, each the beginning of the next, so that only the length differs */
static void prefixes(struct kunit *test)
{
	struct rdmatensor_metacache *cache = new_cache(test, RDMATENSOR_NAME_MAX);
	char *zeros = kunit_kzalloc(test, RDMATENSOR_NAME_MAX, GFP_KERNEL);
	struct rdmatensor_metacache_entry *entry;
	struct rdmatensor_meta meta = floats;
	u16 len, read_len;

	KUNIT_ASSERT_NOT_NULL(test, zeros);
	for (len = RDMATENSOR_NAME_MAX; len; len--) {
		entry = get(test, cache, zeros, len);
		expect_known(test, entry, NULL);
		meta.dims[0] = len;
		rdmatensor_metacache_learn(entry, &meta);
		rdmatensor_metacache_put(cache, entry);
	}
	for (len = RDMATENSOR_NAME_MAX; len; len--) {
		entry = get(test, cache, zeros, len);
		meta.dims[0] = len;
		expect_known(test, entry, &meta);
		rdmatensor_metacache_name(entry, &read_len);
		KUNIT_EXPECT_EQ(test, read_len, len);
		rdmatensor_metacache_put(cache, entry);
	}
	rdmatensor_metacache_free(cache);
}

static void longest_name(struct kunit *test)
{
	struct rdmatensor_metacache *cache = new_cache(test, 10);
	char *long_name = kunit_kzalloc(test, RDMATENSOR_NAME_MAX, GFP_KERNEL);
	struct rdmatensor_metacache_entry *a, *b;
	u16 len;

	KUNIT_ASSERT_NOT_NULL(test, long_name);
	a = get(test, cache, long_name, RDMATENSOR_NAME_MAX);
	long_name[RDMATENSOR_NAME_MAX - 1] = 1;
	b = get(test, cache, long_name, RDMATENSOR_NAME_MAX);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_EQ(test, memcmp(rdmatensor_metacache_name(b, &len), long_name,
				     RDMATENSOR_NAME_MAX), 0);
	KUNIT_EXPECT_EQ(test, len, RDMATENSOR_NAME_MAX);
	rdmatensor_metacache_put(cache, a);
	rdmatensor_metacache_put(cache, b);
	rdmatensor_metacache_free(cache);
}

/* Names up to the bound are kept; each further one is its getter's alone */
static void bound(struct kunit *test)
{
	static const u32 bounds[] = { 0, 1, 2, 5 };
	struct rdmatensor_metacache_entry *entry, *other;
	struct rdmatensor_metacache *cache;
	unsigned int i;
	char name;

	for (i = 0; i < ARRAY_SIZE(bounds); i++) {
		cache = new_cache(test, bounds[i]);
		for (name = 0; name < 6; name++) {
			entry = get(test, cache, &name, 1);
			rdmatensor_metacache_learn(entry, &floats);
			other = get(test, cache, &name, 1);
			if (name < bounds[i]) {
				KUNIT_EXPECT_PTR_EQ(test, entry, other);
				expect_known(test, other, &floats);
			} else {
				KUNIT_EXPECT_PTR_NE(test, entry, other);
				expect_known(test, other, NULL);
			}
			rdmatensor_metacache_put(cache, other);
			expect_known(test, entry, &floats);
			rdmatensor_metacache_put(cache, entry);
		}
		for (name = 0; name < 6; name++) {
			entry = get(test, cache, &name, 1);
			expect_known(test, entry, name < bounds[i] ? &floats : NULL);
			rdmatensor_metacache_put(cache, entry);
		}
		rdmatensor_metacache_free(cache);
	}
}

static void many_names(struct kunit *test)
{
	struct rdmatensor_metacache *cache = new_cache(test, 1 << 20);
	struct rdmatensor_metacache_entry *entry;
	struct rdmatensor_meta meta = floats;
	u32 i;

	for (i = 0; i < 100000; i++) {
		entry = get(test, cache, &i, sizeof(i));
		expect_known(test, entry, NULL);
		meta.dims[0] = i;
		rdmatensor_metacache_learn(entry, &meta);
		rdmatensor_metacache_put(cache, entry);
	}
	for (i = 0; i < 100000; i++) {
		entry = get(test, cache, &i, sizeof(i));
		meta.dims[0] = i;
		expect_known(test, entry, &meta);
		rdmatensor_metacache_put(cache, entry);
	}
	rdmatensor_metacache_free(cache);
}

static void free_empty(struct kunit *test)
{
	rdmatensor_metacache_free(new_cache(test, 0));
	rdmatensor_metacache_free(new_cache(test, U32_MAX));
}

static struct kunit_case metacache_tests[] = {
	KUNIT_CASE(learns),
	KUNIT_CASE(getters_share),
	KUNIT_CASE(names),
	KUNIT_CASE(prefixes),
	KUNIT_CASE(longest_name),
	KUNIT_CASE(bound),
	KUNIT_CASE(many_names),
	KUNIT_CASE(free_empty),
	{}
};

static struct kunit_suite metacache_suite = {
	.name = "rdmatensor_metacache",
	.test_cases = metacache_tests,
};

kunit_test_suite(metacache_suite);
