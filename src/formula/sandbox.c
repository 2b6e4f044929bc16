/* sandbox.c - an empty database in memory, and what an expression may use of it. */
#include <sqlite3.h>
#include <string.h>

#include "stepsim/formula.h"
#include "stepsim/text.h"

static const char *const functions[] = {
    "abs",   "ceil",  "ceiling", "coalesce",   "exp",       "floor", "format", "glob",   "ifnull",
    "iif",   "instr", "length",  "like",       "ln",        "log",   "log10",  "log2",   "lower",
    "max",   "min",   "mod",     "noop_slots", "nullif",    "pow",   "power",  "printf", "replace",
    "round", "sign",  "sqrt",    "substr",     "substring", "trim",  "trunc",  "upper",
};

static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)context;
    (void)c;
    (void)d;
    /* What can be read is the row of the point; SQLite's own tables cannot. */
    const bool reads = action == SQLITE_READ && sqlite3_strnicmp(a, "sqlite_", 7) != 0;
    if (action == SQLITE_SELECT || reads) {
        return SQLITE_OK;
    }
    for (size_t i = 0; action == SQLITE_FUNCTION && i < sizeof functions / sizeof functions[0];
         i++) {
        if (sqlite3_stricmp(functions[i], b) == 0) {
            return SQLITE_OK;
        }
    }
    return SQLITE_DENY;
}

/*
 * noop_slots(layers, chunks): the list of empty slots that fills `layers` up to equal chunks.
 * At most one for each chunk: the last chunk first, which has the head, then from the first on.
 */
static void noop_slots(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const sqlite3_int64 layers = sqlite3_value_int64(values[0]);
    const sqlite3_int64 chunks = sqlite3_value_int64(values[1]);
    if (layers < 1 || chunks < 1 || layers > 100000 || chunks > 100000) {
        sqlite3_result_error(context, "noop_slots(layers, chunks) needs two positive counts", -1);
        return;
    }
    const sqlite3_int64 slots = (layers + chunks - 1) / chunks;
    const sqlite3_int64 empty = slots * chunks - layers;
    struct text list = {0};
    text_add(&list, "[");
    for (sqlite3_int64 i = 0; i < empty; i++) {
        /* Ascending: chunks 0 .. empty-2, then the last one. */
        const sqlite3_int64 chunk = i + 1 < empty ? i : chunks - 1;
        text_add(&list, "%s%lld", i > 0 ? ", " : "", (long long)(chunk * slots + slots - 1));
    }
    text_add(&list, "]");
    sqlite3_result_text(context, text_string(&list), -1, SQLITE_TRANSIENT);
    text_free(&list);
}

struct sqlite3 *formula_sandbox_open(void)
{
    sqlite3 *handle = NULL;
    if (sqlite3_open(":memory:", &handle) != SQLITE_OK) {
        sqlite3_close(handle);
        return NULL;
    }
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_create_function(handle, "noop_slots", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                            noop_slots, NULL, NULL);
    sqlite3_set_authorizer(handle, authorize, NULL);
    return handle;
}
