/*
 * answer_store.c - an answer out of a results database.
 *
 * Shares of the step are stored as doubles; times the step they give back the whole
 * picoseconds that they came from, since a double holds a step to a thousandth of one.
 */
#include <cjson/cJSON.h>
#include <math.h>

#include "stepsim/arena.h"
#include "stepsim/compare.h"
#include "stepsim/metric.h"
#include "stepsim/store.h"
#include "stepsim/text.h"

static double number(const struct store_query *query, uint32_t column)
{
    const struct store_cell cell = store_query_cell(query, column);
    return cell.kind == STORE_REAL      ? cell.real
           : cell.kind == STORE_INTEGER ? (double)cell.integer
                                        : (double)NAN;
}

/* One row of one statement about a run; NULL with an error if there is none. */
static struct store_query *ask_row(struct store *store, const char *sql, const char *run_id,
                                   struct error_list *errors)
{
    struct store_query *query = store_query_open(store, sql, &run_id, 1, errors);
    if (query != NULL && !store_query_next(query, errors)) {
        error_add(errors, ERROR_unknown_name, (struct location){0}, "diff",
                  "there is no run %s with a result in the database; `stepsim query DB --sql "
                  "\"select run_id, status from runs\"` lists them",
                  run_id);
        store_query_close(query);
        query = NULL;
    }
    return query;
}

static bool read_metrics(struct store *store, const char *run_id, double *metrics,
                         struct error_list *errors)
{
    struct arena *scratch = arena_create("columns");
    struct text sql = {0};
    text_add(&sql, "select ");
    for (size_t i = 0; i < metric_count; i++) {
        const char *column = store_column_of(metric_table[i].name, scratch);
        text_add(&sql, "%s%s", i > 0 ? ", " : "", column != NULL ? column : "null");
    }
    text_add(&sql, " from runs where run_id = ?1 + 0 and status in ('ok', 'does_not_fit')");
    struct store_query *query = ask_row(store, text_string(&sql), run_id, errors);
    for (uint32_t i = 0; query != NULL && i < metric_count; i++) {
        metrics[i] = number(query, i);
    }
    const bool found = query != NULL;
    store_query_close(query);
    text_free(&sql);
    arena_destroy(scratch);
    return found;
}

static double metric_of(const double *metrics, const char *name)
{
    const struct metric *metric = metric_find(name);
    ASSERT(metric != NULL);
    return metrics[metric - metric_table];
}

static bool read_memory(struct store *store, const char *run_id, struct answer_terms *terms,
                        struct error_list *errors)
{
    struct store_query *query = ask_row(
        store,
        "select s.stage, s.weights, s.gradients, s.optimizer, s.activations, s.logits, s.buffers, "
        "s.reserve from stages s join runs r using (run_id) where run_id = ?1 + 0 and s.stage = "
        "r.memory_peak_stage",
        run_id, errors);
    if (query == NULL) {
        return false;
    }
    terms->memory_stage = (uint32_t)store_query_cell(query, 0).integer;
    for (uint32_t t = 0; t < MEMORY_TERM_COUNT; t++) {
        terms->memory_bytes[t] = number(query, t + 1);
    }
    store_query_close(query);
    return true;
}

static const cJSON *read_keys(struct store *store, const char *run_id, struct error_list *errors)
{
    struct store_query *query =
        ask_row(store, "select scenario from v_scenarios where run_id = ?1 + 0", run_id, errors);
    const cJSON *keys = NULL;
    if (query != NULL) {
        const struct store_cell cell = store_query_cell(query, 0);
        keys = cell.kind == STORE_TEXT ? cJSON_Parse(cell.text) : NULL;
        store_query_close(query);
    }
    return keys != NULL || errors->count > 0 ? keys : cJSON_CreateObject();
}

bool answer_of_store(struct store *store, const char *run_id, struct answer *answer,
                     struct arena *arena, struct error_list *errors)
{
    double *metrics = ARENA_ARRAY(arena, metric_count, double);
    *answer = (struct answer){.name = run_id, .metrics = metrics};
    answer->terms.time_stage = ANSWER_STAGE_UNKNOWN;
    if (!read_metrics(store, run_id, metrics, errors) ||
        !read_memory(store, run_id, &answer->terms, errors)) {
        return false;
    }
    const double step_s = metric_of(metrics, "step_time_s");
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const char *share =
            arena_printf(arena, "time_share.%s", time_cause_name((enum time_cause)c));
        answer->terms.time_ps[c] =
            (sim_time)llround(metric_of(metrics, share) * step_s * SIM_TIME_PER_S);
    }
    answer->keys = read_keys(store, run_id, errors);
    return answer->keys != NULL;
}
