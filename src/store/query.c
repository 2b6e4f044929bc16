/*
 * query.c - one SELECT over a file that cannot change.
 *
 * The handle is read-only and query_only; the authorizer refuses what is not reading (ATTACH,
 * PRAGMA, load_extension, writing), and a progress handler ends what runs away.
 */
#include <string.h>
#include <time.h>

#include "store/store_internal.h"

#define QUERY_LIMIT_S  300
#define STEPS_PER_LOOK 100000

struct store_query {
    struct store *store;
    sqlite3_stmt *statement;
    time_t started;
};

static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)context;
    (void)a;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static int look_at_clock(void *context)
{
    const struct store_query *query = context;
    return time(NULL) - query->started > QUERY_LIMIT_S;
}

static void report_query(const struct store_query *query, struct error_list *errors)
{
    const int code = sqlite3_errcode(query->store->handle);
    if (code == SQLITE_ERROR || code == SQLITE_AUTH || code == SQLITE_INTERRUPT) {
        const char *advice = code == SQLITE_AUTH ? "; a query can only read"
                             : code == SQLITE_INTERRUPT
                                 ? "; a query may take five minutes"
                                 : "; `stepsim query DB --sql \"select name from sqlite_master\"` "
                                   "lists tables and views";
        error_add(errors, ERROR_database_query, (struct location){query->store->path, 0, 0}, NULL,
                  "%s%s", sqlite3_errmsg(query->store->handle), advice);
    } else {
        store_fail(query->store, "cannot read", errors);
    }
}

struct store_query *store_query_open(struct store *store, const char *sql,
                                     const char *const *values, uint32_t value_count,
                                     struct error_list *errors)
{
    struct store_query *query = ARENA_NEW(store->arena, struct store_query);
    *query = (struct store_query){.store = store, .started = time(NULL)};
    sqlite3_set_authorizer(store->handle, authorize, NULL);
    sqlite3_progress_handler(store->handle, STEPS_PER_LOOK, look_at_clock, query);
    const char *tail = "";
    if (sqlite3_prepare_v2(store->handle, sql, -1, &query->statement, &tail) != SQLITE_OK) {
        report_query(query, errors);
        return NULL;
    }
    tail += strspn(tail, " \t\r\n;");
    if (query->statement == NULL || *tail != '\0') {
        error_add(errors, ERROR_database_query, (struct location){store->path, 0, 0}, NULL,
                  "a query is one SELECT");
        sqlite3_finalize(query->statement);
        return NULL;
    }
    for (uint32_t i = 0; i < value_count; i++) {
        if ((int)i < sqlite3_bind_parameter_count(query->statement)) {
            sqlite3_bind_text(query->statement, (int)i + 1, values[i], -1, SQLITE_TRANSIENT);
        }
    }
    return query;
}

uint32_t store_query_columns(const struct store_query *query)
{
    return (uint32_t)sqlite3_column_count(query->statement);
}

const char *store_query_heading(const struct store_query *query, uint32_t column)
{
    return sqlite3_column_name(query->statement, (int)column);
}

bool store_query_next(struct store_query *query, struct error_list *errors)
{
    const int step = sqlite3_step(query->statement);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        report_query(query, errors);
    }
    return step == SQLITE_ROW;
}

struct store_cell store_query_cell(const struct store_query *query, uint32_t column)
{
    const int index = (int)column;
    struct store_cell cell = {.kind = STORE_NULL};
    switch (sqlite3_column_type(query->statement, index)) {
    case SQLITE_INTEGER:
        cell.kind = STORE_INTEGER;
        cell.integer = sqlite3_column_int64(query->statement, index);
        break;
    case SQLITE_FLOAT:
        cell.kind = STORE_REAL;
        cell.real = sqlite3_column_double(query->statement, index);
        break;
    case SQLITE_NULL:
        break;
    default:
        cell.kind = STORE_TEXT;
        cell.text = (const char *)sqlite3_column_text(query->statement, index);
        break;
    }
    return cell;
}

void store_query_close(struct store_query *query)
{
    if (query != NULL) {
        sqlite3_finalize(query->statement);
        sqlite3_progress_handler(query->store->handle, 0, NULL, NULL);
        sqlite3_set_authorizer(query->store->handle, NULL, NULL);
    }
}
