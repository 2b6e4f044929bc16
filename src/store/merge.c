/*
 * merge.c - the points of another database that are not here yet.
 *
 * Sweeps meet by their hash, points by their number, so merging a shard twice changes nothing.
 * The other file is opened for reading first, which checks it; columns are matched by name, so
 * that files with fewer columns can be merged. Single simulations have a sweep of their own
 * per file (see cmd_simulate.c), so those of several files do not clash.
 */
#include <string.h>

#include "store/store_internal.h"

/* "a, b, c": the columns of a table that both files have, run_id left out. */
static char *shared_columns(struct store *store, const char *table, struct error_list *errors)
{
    const char *sql = arena_printf(
        store->arena,
        "select group_concat(name, ', ') from (select name from pragma_table_info('%s') where name "
        "in (select name from pragma_table_info('%s', 'other')) and name not in ('run_id', "
        "'sweep_id', 'invocation_id'))",
        table, table);
    sqlite3_stmt *list = store_prepare(store, sql, errors);
    char *names = NULL;
    if (list != NULL && sqlite3_step(list) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(list, 0);
        names = text != NULL ? arena_strdup(store->arena, text) : NULL;
    }
    sqlite3_finalize(list);
    return names;
}

/* Sweeps of the other file and their numbers here, in the temporary table sweep_map; and the
 * invocations, in invocation_map. */
static bool map_sweeps(struct store *store, struct error_list *errors)
{
    return store_exec(
        store,
        "insert into sweeps (kind, name, definition_hash, definition, base, points_total) "
        "select kind, name, definition_hash, definition, base, points_total from other.sweeps "
        "where true order by sweep_id on conflict do nothing;"
        "create temp table sweep_map as select o.sweep_id as theirs, s.sweep_id as ours "
        "from other.sweeps o join main.sweeps s using (definition_hash);"
        "create temp table new_runs as select o.run_id as theirs, "
        "(m.ours << 32) | o.point_no as ours, m.ours as sweep_id from other.runs o "
        "join sweep_map m on m.theirs = o.sweep_id where not exists (select 1 from main.runs r "
        "where r.run_id = (m.ours << 32) | o.point_no) order by 2;"
        "create temp table invocation_map as select o.invocation_id as theirs, "
        "row_number() over (order by o.invocation_id) + (select coalesce(max(invocation_id), 0) "
        "from main.invocations) as ours from other.invocations o where o.invocation_id in "
        "(select invocation_id from other.run_costs c join new_runs n on n.theirs = c.run_id);",
        errors);
}

static bool copy_invocations(struct store *store, struct error_list *errors)
{
    const char *columns = shared_columns(store, "invocations", errors);
    return columns != NULL &&
           store_exec(store,
                      arena_printf(store->arena,
                                   "insert into main.invocations (invocation_id, sweep_id, %s) "
                                   "select i.ours, m.ours, %s from other.invocations o "
                                   "join invocation_map i on i.theirs = o.invocation_id "
                                   "join sweep_map m on m.theirs = o.sweep_id",
                                   columns, columns),
                      errors);
}

static bool copy_table(struct store *store, const char *table, struct error_list *errors)
{
    const char *columns = shared_columns(store, table, errors);
    const bool runs = strcmp(table, "runs") == 0;
    const bool costs = strcmp(table, "run_costs") == 0;
    const char *ids = runs ? "run_id, sweep_id, " : costs ? "run_id, invocation_id, " : "run_id, ";
    const char *values = runs ? "n.ours, n.sweep_id, " : costs ? "n.ours, i.ours, " : "n.ours, ";
    const char *join = costs ? "left join invocation_map i on i.theirs = o.invocation_id " : "";
    return columns != NULL &&
           store_exec(store,
                      arena_printf(store->arena,
                                   "insert into main.%s (%s%s) select %s%s from new_runs n join "
                                   "other.%s o on o.run_id = n.theirs %sorder by n.ours",
                                   table, ids, columns, values, columns, table, join),
                      errors);
}

static bool copy_all(struct store *store, struct store_merge_counts *counts,
                     struct error_list *errors)
{
    static const char *const tables[] = {"runs", "run_keys", "stages", "steps", "run_costs"};
    int64_t sweeps = 0, added = 0, theirs = 0;
    bool good = map_sweeps(store, errors) &&
                store_number(store, "select count(*) from sweep_map", &sweeps, errors) &&
                store_number(store, "select count(*) from new_runs", &added, errors) &&
                store_number(store, "select count(*) from other.runs", &theirs, errors) &&
                copy_invocations(store, errors);
    for (size_t i = 0; good && i < sizeof tables / sizeof tables[0]; i++) {
        good = copy_table(store, tables[i], errors);
    }
    counts->sweeps += (uint64_t)sweeps;
    counts->points_added += (uint64_t)added;
    counts->points_there += (uint64_t)(theirs - added);
    return good;
}

static bool attach(struct store *store, const char *from, struct error_list *errors)
{
    sqlite3_stmt *statement = store_prepare(store, "attach ? as other", errors);
    if (statement == NULL) {
        return false;
    }
    sqlite3_bind_text(statement, 1, from, -1, SQLITE_STATIC);
    const bool good =
        sqlite3_step(statement) == SQLITE_DONE || store_fail(store, "cannot attach", errors);
    sqlite3_finalize(statement);
    return good;
}

/* Checks the other file by opening it. */
bool store_merge(struct store *store, const char *from, struct store_merge_counts *counts,
                 struct error_list *errors)
{
    struct store *other = store_open(from, STORE_READ, store->arena, errors);
    if (other == NULL) {
        return false;
    }
    store_close(other, errors);
    if (!attach(store, from, errors)) {
        return false;
    }
    bool good = store_exec(store, "begin immediate", errors);
    good = good && copy_all(store, counts, errors) && store_exec(store, "commit", errors);
    if (!good) {
        sqlite3_exec(store->handle, "rollback", NULL, NULL, NULL);
    }
    sqlite3_exec(store->handle,
                 "drop table if exists temp.sweep_map; drop table if exists temp.new_runs;"
                 "drop table if exists temp.invocation_map",
                 NULL, NULL, NULL);
    return (sqlite3_exec(store->handle, "detach other", NULL, NULL, NULL) == SQLITE_OK ||
            store_fail(store, "cannot detach", errors)) &&
           good;
}
