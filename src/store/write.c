/*
 * write.c - packed points into tables, one transaction per batch; sweeps and invocations.
 *
 * A row of `runs` that is there already keeps its place, and the child rows that follow it in
 * the bytes are skipped, so that writing a batch twice changes nothing.
 */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "stepsim_version.h"
#include "store/store_internal.h"

static const char *const table_names[TABLES] = {"runs", "run_keys", "stages", "steps", "run_costs"};

/* What stands in the bytes, in their order; the writer puts the ids in front. */
static const char *const table_columns[TABLES] = {
    [TABLE_RUNS] = "run_id, sweep_id, point_no, status, code, message, error_count, layout_no, "
                   "scenario_hash, scenario_patch, model_hash, calibration_id, flop_convention, "
                   "version, git_commit, digest, event_digest, ranks, verdict",
    [TABLE_RUN_KEYS] = "run_id, key, value, text",
    [TABLE_STAGES] = "run_id, stage, layers, peak_bytes, weights, gradients, optimizer, "
                     "activations, logits, buffers, reserve, peak_phase, compute_busy_s, end_s",
    [TABLE_STEPS] = "run_id, step, step_time_s, mfu, tokens_per_s, load_max_over_mean, "
                    "dropped_ratio, migrations",
    [TABLE_RUN_COSTS] = "run_id, invocation_id, wall_s, cpu_s, memory_peak_bytes",
};

/* Ids that the writer binds itself. */
static const uint16_t table_ids[TABLES] = {2, 1, 1, 1, 2};

static uint32_t comma_count(const char *text)
{
    uint32_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == ',' ? 1 : 0;
    }
    return count;
}

static bool prepare_insert(struct store *store, enum store_table table, struct error_list *errors)
{
    struct text sql = {0};
    text_add(&sql, "insert into %s (%s", table_names[table], table_columns[table]);
    uint32_t values = comma_count(table_columns[table]) + 1;
    if (table == TABLE_RUNS) {
        uint32_t count = 0;
        const struct column *columns = store_columns(&count);
        for (uint32_t i = 0; i < count; i++) {
            text_add(&sql, ", %s", columns[i].name);
        }
        values += count;
    }
    text_add(&sql, ") values (?");
    for (uint32_t i = 1; i < values; i++) {
        text_add_bytes(&sql, ",?", 2);
    }
    text_add(&sql, ") on conflict do nothing");
    store->insert[table] = store_prepare(store, text_string(&sql), errors);
    store->insert_values[table] = values;
    text_free(&sql);
    return store->insert[table] != NULL;
}

/* Reads fields off the bytes. */
struct reader {
    const char *at, *end;
};

static void take(struct reader *reader, void *out, size_t length)
{
    ASSERT((size_t)(reader->end - reader->at) >= length);
    memcpy(out, reader->at, length);
    reader->at += length;
}

static void bind_value(sqlite3_stmt *statement, int index, struct reader *reader)
{
    unsigned char kind = 0;
    take(reader, &kind, 1);
    int64_t integer = 0;
    double real = 0.0;
    uint32_t length = 0;
    switch ((enum store_cell_kind)kind) {
    case STORE_NULL:
        sqlite3_bind_null(statement, index);
        break;
    case STORE_INTEGER:
        take(reader, &integer, sizeof integer);
        sqlite3_bind_int64(statement, index, integer);
        break;
    case STORE_REAL:
        take(reader, &real, sizeof real);
        sqlite3_bind_double(statement, index, real);
        break;
    case STORE_TEXT:
        take(reader, &length, sizeof length);
        ASSERT((size_t)(reader->end - reader->at) >= length);
        sqlite3_bind_text(statement, index, reader->at, (int)length, SQLITE_STATIC);
        reader->at += length;
        break;
    }
}

static int64_t run_id_of(const struct store *store, uint64_t point_no)
{
    return (int64_t)store->sweep_id << 32 | (int64_t)point_no;
}

/* One row. The point number stands first in a row of `runs`; it moves *run_id on. */
static bool write_row(struct store *store, struct reader *reader, int64_t *run_id, bool *skip,
                      struct error_list *errors)
{
    unsigned char table = 0;
    uint16_t values = 0;
    take(reader, &table, 1);
    take(reader, &values, sizeof values);
    ASSERT(table < TABLES);
    if (store->insert[table] == NULL && !prepare_insert(store, table, errors)) {
        return false;
    }
    sqlite3_stmt *statement = store->insert[table];
    const uint16_t ids = table_ids[table];
    ASSERT((uint32_t)values + ids == store->insert_values[table]);
    if (table == TABLE_RUNS) {
        int64_t point_no = 0;
        memcpy(&point_no, reader->at + 1, sizeof point_no);
        *run_id = run_id_of(store, (uint64_t)point_no);
        sqlite3_bind_int64(statement, 2, store->sweep_id);
    } else if (table == TABLE_RUN_COSTS) {
        sqlite3_bind_int64(statement, 2, store->invocation_id);
    }
    sqlite3_bind_int64(statement, 1, *run_id);
    for (uint16_t i = 0; i < values; i++) {
        bind_value(statement, ids + i + 1, reader);
    }
    if (table != TABLE_RUNS && *skip) {
        return true;
    }
    const int step = sqlite3_step(statement);
    if (table == TABLE_RUNS) {
        *skip = sqlite3_changes(store->handle) == 0;
    }
    const bool good = step == SQLITE_DONE || store_fail(store, "cannot write a point", errors);
    sqlite3_reset(statement);
    return good;
}

bool store_write(struct store *store, const struct text *bytes, struct error_list *errors)
{
    struct reader reader = {bytes->data, bytes->data + bytes->length};
    if (!store_exec(store, "begin immediate", errors)) {
        return false;
    }
    bool good = true, skip = false;
    int64_t run_id = 0;
    while (good && reader.at < reader.end) {
        good = write_row(store, &reader, &run_id, &skip, errors);
    }
    good = good && store_exec(store, "commit", errors);
    if (!good) {
        sqlite3_exec(store->handle, "rollback", NULL, NULL, NULL);
    }
    return good;
}

/* ---- Sweeps ---- */

static void utc_now(char text[32])
{
    const time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static bool step_once(struct store *store, sqlite3_stmt *statement, struct error_list *errors)
{
    const bool good =
        sqlite3_step(statement) == SQLITE_DONE || store_fail(store, "cannot write", errors);
    sqlite3_finalize(statement);
    return good;
}

static bool add_sweep(struct store *store, const struct store_sweep *sweep,
                      struct error_list *errors)
{
    sqlite3_stmt *insert = store_prepare(
        store,
        "insert into sweeps (kind, name, definition_hash, definition, base, points_total) "
        "values (?, ?, ?, ?, ?, ?) on conflict do nothing",
        errors);
    if (insert == NULL) {
        return false;
    }
    const char *const texts[] = {sweep->kind, sweep->name, sweep->hash, sweep->definition,
                                 sweep->base};
    for (int i = 0; i < 5; i++) {
        sqlite3_bind_text(insert, i + 1, texts[i], -1, SQLITE_STATIC);
    }
    sqlite3_bind_int64(insert, 6, (sqlite3_int64)sweep->points_total);
    if (!step_once(store, insert, errors)) {
        return false;
    }
    sqlite3_stmt *find =
        store_prepare(store, "select sweep_id from sweeps where definition_hash = ?", errors);
    if (find == NULL) {
        return false;
    }
    sqlite3_bind_text(find, 1, sweep->hash, -1, SQLITE_STATIC);
    const bool found = sqlite3_step(find) == SQLITE_ROW;
    store->sweep_id = found ? (uint32_t)sqlite3_column_int64(find, 0) : 0;
    sqlite3_finalize(find);
    return found || store_fail(store, "cannot find the sweep", errors);
}

static bool add_invocation(struct store *store, const struct store_invocation *invocation,
                           struct error_list *errors)
{
    sqlite3_stmt *insert = store_prepare(
        store,
        "insert into invocations (sweep_id, command_line, version, git_commit, schema_version, "
        "host, jobs, shard, started_utc) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        errors);
    if (insert == NULL) {
        return false;
    }
    struct utsname machine;
    char started[32];
    utc_now(started);
    sqlite3_bind_int64(insert, 1, store->sweep_id);
    sqlite3_bind_text(insert, 2, invocation->command_line, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, STEPSIM_VERSION, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 4, STEPSIM_COMMIT, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 5, STORE_SCHEMA_VERSION);
    sqlite3_bind_text(insert, 6, uname(&machine) == 0 ? machine.nodename : "", -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 7, invocation->jobs);
    sqlite3_bind_text(insert, 8, invocation->shard, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 9, started, -1, SQLITE_STATIC);
    const bool good = step_once(store, insert, errors);
    store->invocation_id = sqlite3_last_insert_rowid(store->handle);
    return good;
}

bool store_begin_sweep(struct store *store, const struct store_sweep *sweep,
                       const struct store_invocation *invocation, struct error_list *errors)
{
    bool good = store_exec(store, "begin immediate", errors);
    if (!good) {
        return false;
    }
    good = add_sweep(store, sweep, errors) && add_invocation(store, invocation, errors) &&
           store_exec(store, "commit", errors);
    if (!good) {
        sqlite3_exec(store->handle, "rollback", NULL, NULL, NULL);
    }
    return good;
}

bool store_end_sweep(struct store *store, bool complete, struct error_list *errors)
{
    char ended[32];
    utc_now(ended);
    const char *sql = arena_printf(
        store->arena,
        "create index if not exists runs_by_scenario on runs (scenario_hash);"
        "update invocations set ended_utc = '%s', complete = %d where invocation_id = %lld",
        ended, complete, (long long)store->invocation_id);
    return store_exec(store, sql, errors);
}

uint32_t store_sweep_id(const struct store *store)
{
    return store->sweep_id;
}

bool store_next_point(struct store *store, uint64_t *point_no, struct error_list *errors)
{
    int64_t next = 0;
    const char *sql = arena_printf(
        store->arena, "select coalesce(max(point_no) + 1, 0) from runs where sweep_id = %u",
        store->sweep_id);
    const bool good = store_number(store, sql, &next, errors);
    *point_no = (uint64_t)next;
    return good;
}

bool store_done_points(struct store *store, struct store_done *points, struct error_list *errors)
{
    const char *sql = arena_printf(store->arena,
                                   "select point_no, iif(status = 'ok', tokens_per_s, 0) from runs "
                                   "where sweep_id = %u",
                                   store->sweep_id);
    sqlite3_stmt *list = store_prepare(store, sql, errors);
    if (list == NULL) {
        return false;
    }
    points->found = 0;
    int step = SQLITE_DONE;
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        const uint64_t point_no = (uint64_t)sqlite3_column_int64(list, 0);
        if (point_no < points->count) {
            points->done[point_no] = true;
            points->tokens_per_s[point_no] = sqlite3_column_double(list, 1);
            points->found++;
        }
    }
    const bool good = step == SQLITE_DONE || store_fail(store, "cannot read the points", errors);
    sqlite3_finalize(list);
    return good;
}

bool store_stale_points(struct store *store, uint64_t *count, struct error_list *errors)
{
    int64_t stale = 0;
    const char *sql = arena_printf(
        store->arena, "select count(*) from runs where sweep_id = %u and git_commit <> '%s'",
        store->sweep_id, STEPSIM_COMMIT);
    const bool good = store_number(store, sql, &stale, errors);
    *count = (uint64_t)stale;
    return good;
}

bool store_forget_failed(struct store *store, struct error_list *errors)
{
    return store_exec(store,
                      arena_printf(store->arena,
                                   "delete from runs where sweep_id = %u and status = 'failed'",
                                   store->sweep_id),
                      errors);
}

bool store_forget_stale(struct store *store, struct error_list *errors)
{
    return store_exec(store,
                      arena_printf(store->arena,
                                   "delete from runs where sweep_id = %u and git_commit <> '%s'",
                                   store->sweep_id, STEPSIM_COMMIT),
                      errors);
}
