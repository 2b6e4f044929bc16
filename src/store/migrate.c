/*
 * migrate.c - brings a file to the schema of this program, in one transaction.
 *
 * Numbered migrations change the fixed tables (user_version counts them). Columns for keys
 * and metrics are compared with the tables of the program and added where they are missing.
 * Views are dropped and made anew when their text is another one.
 */
#include <string.h>

#include "stepsim_embedded.h"
#include "store/store_internal.h"

static const char *const migrations[STORE_SCHEMA_VERSION] = {
    store_schema_1_sql,
    store_schema_2_sql,
};

static void add_generated_columns(struct text *sql)
{
    uint32_t count = 0;
    const struct column *columns = store_columns(&count);
    for (uint32_t i = 0; i < count; i++) {
        text_add(sql, ",\n    %s %s", columns[i].name, columns[i].type);
    }
}

/* The text with one column per key and metric in place of the mark. */
static bool run_migration(struct store *store, const char *sql, struct error_list *errors)
{
    static const char mark[] = "/*columns*/";
    const char *at = strstr(sql, mark);
    if (at == NULL) {
        return store_exec(store, sql, errors);
    }
    struct text text = {0};
    text_add_bytes(&text, sql, (size_t)(at - sql));
    add_generated_columns(&text);
    text_add(&text, "%s", at + sizeof mark - 1);
    const bool done = store_exec(store, text_string(&text), errors);
    text_free(&text);
    return done;
}

static bool add_missing_columns(struct store *store, struct error_list *errors)
{
    bool there[COLUMNS_MAX] = {false};
    uint32_t count = 0;
    const struct column *columns = store_columns(&count);
    sqlite3_stmt *info = store_prepare(store, "select name from pragma_table_info('runs')", errors);
    while (info != NULL && sqlite3_step(info) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(info, 0);
        for (uint32_t i = 0; i < count; i++) {
            there[i] = there[i] || strcmp(columns[i].name, name) == 0;
        }
    }
    bool good = info != NULL && sqlite3_finalize(info) == SQLITE_OK;
    for (uint32_t i = 0; good && i < count; i++) {
        if (!there[i]) {
            const char *sql = arena_printf(store->arena, "alter table runs add column %s %s",
                                           columns[i].name, columns[i].type);
            good = store_exec(store, sql, errors);
        }
    }
    return good;
}

void store_generated_views(struct text *out)
{
    static const char share[] = "time_share.", comm[] = "comm.", total[] = ".total_s";
    const char *join = "";
    text_add(out, "-- Where the time of the step goes: one row per cause.\ncreate view time_share "
                  "as\n");
    for (size_t i = 0; i < metric_count; i++) {
        const char *name = metric_table[i].name;
        if (strncmp(name, share, sizeof share - 1) == 0) {
            const char *cause = name + sizeof share - 1;
            text_add(out,
                     "%sselect run_id, '%s' as cause, time_share_%s as share, time_share_%s * "
                     "step_time_s as seconds from runs where step_time_s is not null",
                     join, cause, cause, cause);
            join = "\nunion all ";
        }
    }
    text_add(out, ";\n\n-- Communication and copies: one row per kind.\ncreate view comm as\n");
    join = "";
    for (size_t i = 0; i < metric_count; i++) {
        const char *name = metric_table[i].name;
        const char *end = strstr(name, total);
        if (strncmp(name, comm, sizeof comm - 1) == 0 && end != NULL) {
            const char *kind = name + sizeof comm - 1;
            const int length = (int)(end - kind);
            text_add(out,
                     "%sselect run_id, '%.*s' as kind, comm_%.*s_total_s as total_s, "
                     "comm_%.*s_exposed_s as exposed_s, comm_%.*s_bytes_per_device as "
                     "bytes_per_device from runs where step_time_s is not null",
                     join, length, kind, length, kind, length, kind, length, kind);
            join = "\nunion all ";
        }
    }
    text_add(out, ";\n\n");
}

/* A text for comparing versions of the views. */
static uint64_t fingerprint(const char *text)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a, 64 bit */
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

static bool drop_views(struct store *store, struct error_list *errors)
{
    struct text sql = {0};
    sqlite3_stmt *list =
        store_prepare(store, "select name from sqlite_master where type = 'view'", errors);
    while (list != NULL && sqlite3_step(list) == SQLITE_ROW) {
        char *drop = sqlite3_mprintf("drop view \"%w\";", sqlite3_column_text(list, 0));
        text_add(&sql, "%s", drop);
        sqlite3_free(drop);
    }
    const bool good = list != NULL && sqlite3_finalize(list) == SQLITE_OK &&
                      store_exec(store, text_string(&sql), errors);
    text_free(&sql);
    return good;
}

static bool refresh_views(struct store *store, struct error_list *errors)
{
    struct text sql = {0};
    store_generated_views(&sql);
    text_add(&sql, "%s", store_views_sql);
    const char *mark =
        arena_printf(store->arena, "%016llx", (unsigned long long)fingerprint(sql.data));
    int64_t same = 0;
    const char *ask = arena_printf(
        store->arena, "select count(*) from meta where key = 'views' and value = '%s'", mark);
    const char *note =
        arena_printf(store->arena, "insert or replace into meta values ('views', '%s')", mark);
    bool good = store_number(store, ask, &same, errors);
    if (good && same == 0) {
        good = drop_views(store, errors) && store_exec(store, sql.data, errors) &&
               store_exec(store, note, errors);
    }
    text_free(&sql);
    return good;
}

bool store_migrate(struct store *store, struct error_list *errors)
{
    int64_t version = 0;
    if (!store_exec(store, "begin immediate", errors)) {
        return false;
    }
    bool good = store_number(store, "pragma user_version", &version, errors);
    for (int64_t i = version; good && i < STORE_SCHEMA_VERSION; i++) {
        good = run_migration(store, migrations[i], errors);
    }
    good = good && (version == 0 || add_missing_columns(store, errors));
    good = good && refresh_views(store, errors);
    if (good && version < STORE_SCHEMA_VERSION) {
        const char *marks =
            arena_printf(store->arena, "pragma application_id = %d; pragma user_version = %d",
                         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
        good = store_exec(store, marks, errors);
    }
    good = good && store_exec(store, "commit", errors);
    if (!good) {
        sqlite3_exec(store->handle, "rollback", NULL, NULL, NULL);
    }
    return good;
}
