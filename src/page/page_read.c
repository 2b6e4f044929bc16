/*
 * page_read.c - what the page shows, out of the database.
 */
#include <string.h>

#include "page_internal.h"

/* ?1: sweep or null, ?2: rows. The Pareto front survives the cut. */
static const char runs_sql[] =
    "select r.run_id, r.sweep_id, r.point_no, r.model, r.status = 'ok', p.run_id is not null, "
    "r.step_time_s, r.tokens_per_s, r.mfu, r.memory_peak_bytes / 1073741824.0, "
    "r.memory_headroom_bytes / 1073741824.0, r.verdict, r.time_share_compute, "
    "r.time_share_recompute, r.time_share_tp, r.time_share_ep, r.time_share_cp, r.time_share_pp, "
    "r.time_share_dp, r.time_share_swap, r.time_share_host, r.time_share_imbalance, "
    "r.time_share_bubble, r.time_share_optimizer from (select *, status = 'ok' as fitting from "
    "runs where status in ('ok', 'does_not_fit') and (?1 is null or sweep_id = ?1 + 0)) r left "
    "join v_pareto p using (run_id) order by r.fitting desc, p.run_id is null and (select count(*) "
    "from runs) > ?2 + 0, r.tokens_per_s desc, r.run_id limit ?2 + 0";
static const char count_sql[] = "select count(*) from runs where status in ('ok', 'does_not_fit') "
                                "and (?1 is null or sweep_id = ?1 + 0)";
static const char keys_sql[] = "select key, text from run_keys where run_id = ?1 + 0 order by key";
static const char stages_sql[] =
    "select weights, gradients, optimizer, activations, logits, buffers, reserve from stages where "
    "run_id = ?1 + 0 order by stage";
static const char rejected_sql[] =
    "select status, code, points, example from v_rejected where ?1 is null or sweep_id = ?1 + 0 "
    "order by points desc";

const char *const page_memory_parts[7] = {"weights", "gradients", "optimizer", "activations",
                                          "logits",  "buffers",   "reserve"};

static double number(const struct store_query *query, uint32_t column)
{
    const struct store_cell cell = store_query_cell(query, column);
    return cell.kind == STORE_REAL      ? cell.real
           : cell.kind == STORE_INTEGER ? (double)cell.integer
                                        : 0.0;
}

static const char *words(const struct store_query *query, uint32_t column, struct arena *arena)
{
    const struct store_cell cell = store_query_cell(query, column);
    return cell.kind == STORE_TEXT ? arena_strdup(arena, cell.text) : "";
}

static void read_run(const struct store_query *query, struct page_run *run, struct arena *arena)
{
    *run = (struct page_run){
        .run_id = store_query_cell(query, 0).integer,
        .sweep_id = store_query_cell(query, 1).integer,
        .point_no = store_query_cell(query, 2).integer,
        .model = words(query, 3, arena),
        .fits = number(query, 4) != 0.0,
        .pareto = number(query, 5) != 0.0,
        .step_time_s = number(query, 6),
        .tokens_per_s = number(query, 7),
        .mfu = number(query, 8),
        .peak_gib = number(query, 9),
        .headroom_gib = number(query, 10),
        .verdict = words(query, 11, arena),
    };
    for (uint32_t c = 0; c < CAUSE_COUNT; c++) {
        run->share[c] = number(query, 12 + c);
    }
}

struct reader {
    const struct page_ask *ask;
    struct arena *arena;
    struct error_list *errors;
};

static struct store_query *ask_query(const struct reader *reader, const char *sql,
                                     const char *first, const char *second)
{
    const char *values[2] = {first, second};
    return store_query_open(reader->ask->store, sql, values, second != NULL ? 2 : 1,
                            reader->errors);
}

static bool read_runs(const struct reader *reader, struct page_data *data)
{
    struct store_query *count = ask_query(reader, count_sql, reader->ask->sweep, NULL);
    if (count == NULL) {
        return false;
    }
    if (store_query_next(count, reader->errors)) {
        data->runs_in_file = store_query_cell(count, 0).integer;
    }
    store_query_close(count);
    const char *limit = arena_printf(reader->arena, "%u", PAGE_RUNS_MAX);
    struct store_query *query = ask_query(reader, runs_sql, reader->ask->sweep, limit);
    if (query == NULL) {
        return false;
    }
    data->runs = ARENA_ARRAY(reader->arena, PAGE_RUNS_MAX, struct page_run);
    while (data->run_count < PAGE_RUNS_MAX && store_query_next(query, reader->errors)) {
        read_run(query, &data->runs[data->run_count++], reader->arena);
    }
    store_query_close(query);
    return true;
}

#define KEYS_MAX 64u

static bool read_keys(const struct reader *reader, struct page_run *run)
{
    const char *id = arena_printf(reader->arena, "%lld", (long long)run->run_id);
    struct store_query *query = ask_query(reader, keys_sql, id, NULL);
    if (query == NULL) {
        return false;
    }
    struct page_key keys[KEYS_MAX];
    while (run->key_count < KEYS_MAX && store_query_next(query, reader->errors)) {
        keys[run->key_count++] =
            (struct page_key){words(query, 0, reader->arena), words(query, 1, reader->arena)};
    }
    store_query_close(query);
    struct page_key *copy = ARENA_ARRAY(reader->arena, run->key_count + 1, struct page_key);
    memcpy(copy, keys, run->key_count * sizeof *keys);
    run->keys = copy;
    return true;
}

static bool read_stages(const struct reader *reader, struct page_run *run)
{
    const char *id = arena_printf(reader->arena, "%lld", (long long)run->run_id);
    struct store_query *query = ask_query(reader, stages_sql, id, NULL);
    if (query == NULL) {
        return false;
    }
    struct page_stage *stages = NULL;
    uint32_t capacity = 0;
    while (store_query_next(query, reader->errors)) {
        if (run->stage_count == capacity) {
            struct page_stage *more =
                ARENA_ARRAY(reader->arena, capacity > 0 ? 2 * capacity : 16, struct page_stage);
            if (capacity > 0) {
                memcpy(more, stages, capacity * sizeof *stages);
            }
            capacity = capacity > 0 ? 2 * capacity : 16;
            stages = more;
        }
        for (uint32_t p = 0; p < 7; p++) {
            stages[run->stage_count].parts[p] = number(query, p) / GIB_BYTES;
        }
        run->stage_count++;
    }
    store_query_close(query);
    run->stages = stages;
    return true;
}

static bool read_rejected(const struct reader *reader, struct page_data *data)
{
    struct store_query *query = ask_query(reader, rejected_sql, reader->ask->sweep, NULL);
    if (query == NULL) {
        return false;
    }
    struct page_rejected *rows = ARENA_ARRAY(reader->arena, 64, struct page_rejected);
    while (data->rejected_count < 64 && store_query_next(query, reader->errors)) {
        rows[data->rejected_count++] = (struct page_rejected){
            .status = words(query, 0, reader->arena),
            .code = words(query, 1, reader->arena),
            .points = store_query_cell(query, 2).integer,
            .example = words(query, 3, reader->arena),
        };
    }
    data->rejected = rows;
    store_query_close(query);
    return true;
}

bool page_read(const struct page_ask *ask, struct page_data *data, struct arena *arena,
               struct error_list *errors)
{
    const size_t errors_before = errors->count;
    const struct reader reader = {ask, arena, errors};
    *data = (struct page_data){.title = ask->title};
    if (!read_runs(&reader, data) || !read_rejected(&reader, data)) {
        return false;
    }
    for (uint32_t i = 0; i < data->run_count; i++) {
        if (!read_keys(&reader, &data->runs[i]) ||
            (i < 5 * PAGE_BEST && !read_stages(&reader, &data->runs[i]))) {
            return false;
        }
    }
    return errors->count == errors_before;
}

const char *page_run_name(const struct page_run *run, struct arena *arena)
{
    const char *name = "";
    for (uint32_t i = 0; i < run->key_count; i++) {
        const char *dot = strrchr(run->keys[i].key, '.');
        name = arena_printf(arena, "%s%s%s=%s", name, i > 0 ? ", " : "",
                            dot != NULL ? dot + 1 : run->keys[i].key, run->keys[i].text);
    }
    return run->key_count > 0
               ? name
               : arena_printf(arena, "%s, run %lld", run->model, (long long)run->run_id);
}
