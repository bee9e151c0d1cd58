// SPDX-License-Identifier: GPL-2.0
/*
 * The context's tables by id: what it exports, and what it has opened.
 *
 * Exports and opened tables share their ids. The context holds one reference of each;
 * an export that is closed may live on in an opened table of the same context, withdrawn.
 * An opened table that is closed lives on in its gathers.
 */
#include "context/context.h"
#include "core/limits.h"

#define TABLES_MAX 1024U

/* Tags of entries in context->tables */
#define TABLES_OPENED 0
#define TABLES_EXPORT 1

int rdmatensor_context_tables_reserve(struct rdmatensor_context *context, u32 *id)
{
	int ret = -EUSERS;

	mutex_lock(&context->lock);
	if (context->gone) {
		ret = -ENODEV;
	} else if (context->nr_tables < TABLES_MAX) {
		ret = xa_alloc_cyclic(&context->tables, id, NULL, XA_LIMIT(1, S32_MAX),
				      &context->next_table, RDMATENSOR_GFP_SPARING);
		if (ret >= 0)
			context->nr_tables++;
	}
	mutex_unlock(&context->lock);
	return min(ret, 0);
}

/* After its id was freed */
static void tables_unreserve(struct rdmatensor_context *context)
{
	mutex_lock(&context->lock);
	context->nr_tables--;
	mutex_unlock(&context->lock);
}

void rdmatensor_context_tables_unreserve(struct rdmatensor_context *context, u32 id)
{
	xa_release(&context->tables, id);
	tables_unreserve(context);
}

/* Into a reserved place, which cannot fail */
static void tables_enter(struct rdmatensor_context *context, void *object, unsigned long tag,
			 u32 id)
{
	WARN_ON_ONCE(xa_store(&context->tables, id, xa_tag_pointer(object, tag), GFP_KERNEL));
	rdmatensor_context_list_changed(&context->listed);
}

void rdmatensor_context_tables_add_export(struct rdmatensor_context *context, u32 id,
					  struct rdmatensor_export *export)
{
	tables_enter(context, export, TABLES_EXPORT, id);
}

void rdmatensor_context_tables_add_opened(struct rdmatensor_context *context, u32 id,
					  struct rdmatensor_table *table)
{
	tables_enter(context, table, TABLES_OPENED, id);
}

struct rdmatensor_table *rdmatensor_context_table(struct rdmatensor_context *context, u32 id)
{
	struct rdmatensor_table *table = NULL;
	void *entry;

	xa_lock(&context->tables);
	entry = xa_load(&context->tables, id);
	if (entry && xa_pointer_tag(entry) == TABLES_OPENED) {
		table = xa_untag_pointer(entry);
		rdmatensor_table_get(table);
	}
	xa_unlock(&context->tables);
	return table;
}

static void tables_show_export(const struct rdmatensor_export *export,
			       struct rdmatensor_table_shown *shown)
{
	*shown = (struct rdmatensor_table_shown) {
		.export = true,
		.name_len = export->name_len,
		.row_start = export->info.row_start,
		.row_end = export->info.row_end,
		.row_bytes = export->info.row_bytes,
		.pool_id = export->pool->id,
	};
	memcpy(shown->name, export->name, export->name_len);
}

bool rdmatensor_context_next_table(struct rdmatensor_context *context, unsigned long *id,
				   struct rdmatensor_table_shown *shown)
{
	void *entry;

	xa_lock(&context->tables);
	entry = xa_find_after(&context->tables, id, ULONG_MAX, XA_PRESENT);
	if (entry && xa_pointer_tag(entry) == TABLES_OPENED)
		rdmatensor_table_show(xa_untag_pointer(entry), shown);
	else if (entry)
		tables_show_export(xa_untag_pointer(entry), shown);
	xa_unlock(&context->tables);
	return entry;
}

static void tables_drop(struct rdmatensor_context *context, void *entry)
{
	struct rdmatensor_export *export;

	if (xa_pointer_tag(entry) == TABLES_OPENED) {
		rdmatensor_table_put(xa_untag_pointer(entry));
		return;
	}
	export = xa_untag_pointer(entry);
	rdmatensor_export_withdraw(&context->exports, export);
	rdmatensor_export_put(export);
}

int rdmatensor_context_tables_remove(struct rdmatensor_context *context, u32 id)
{
	void *entry;

	/* A removal does not find it once it is out of the table: so it waits for this */
	down_read(&context->device_use);
	xa_lock(&context->tables);
	/* A reserved place loads as NULL */
	entry = xa_load(&context->tables, id);
	if (entry)
		__xa_erase(&context->tables, id);
	xa_unlock(&context->tables);
	if (entry) {
		rdmatensor_context_list_changed(&context->listed);
		tables_drop(context, entry);
		tables_unreserve(context);
	}
	up_read(&context->device_use);
	return entry ? 0 : -ENOENT;
}

void rdmatensor_context_tables_withdraw(struct rdmatensor_context *context)
{
	unsigned long id;
	void *entry;

	lockdep_assert_held_write(&context->device_use);
	xa_for_each(&context->tables, id, entry)
		if (xa_pointer_tag(entry) == TABLES_EXPORT)
			rdmatensor_export_withdraw(&context->exports, xa_untag_pointer(entry));
}

void rdmatensor_context_tables_free(struct rdmatensor_context *context)
{
	unsigned long id;
	void *entry;

	xa_for_each(&context->tables, id, entry) {
		xa_erase(&context->tables, id);
		tables_drop(context, entry);
	}
}
