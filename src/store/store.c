/*
 * store.c - opening, checking and closing a results database.
 *
 * A file is ours when it is empty or carries our application id. Newer schemas are refused:
 * an older program cannot know what it would break.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "store/store_internal.h"

#define BUSY_TIMEOUT_MS 30000

static struct location at_path(const struct store *store)
{
    return (struct location){store->path, 0, 0};
}

bool store_fail(const struct store *store, const char *doing, struct error_list *errors)
{
    const int code = sqlite3_errcode(store->handle);
    const char *advice = "";
    enum error_code error = ERROR_database;
    switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        error = ERROR_database_busy;
        advice = "; another program holds the file, try again when it is done";
        break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
        advice = "; what was committed before is safe, free some space and run the same command "
                 "again";
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        advice = "; the file and its folder must be writable";
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        advice = "; the file is damaged or no database: `sqlite3 FILE .recover` may save rows, or "
                 "give another file";
        break;
    default:
        break;
    }
    error_add(errors, error, at_path(store), NULL, "%s: %s%s", doing, sqlite3_errmsg(store->handle),
              advice);
    return false;
}

bool store_exec(struct store *store, const char *sql, struct error_list *errors)
{
    return sqlite3_exec(store->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(store, "cannot write", errors);
}

sqlite3_stmt *store_prepare(struct store *store, const char *sql, struct error_list *errors)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->handle, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_fail(store, "cannot read", errors);
        return NULL;
    }
    return statement;
}

bool store_number(struct store *store, const char *sql, int64_t *number, struct error_list *errors)
{
    sqlite3_stmt *statement = store_prepare(store, sql, errors);
    if (statement == NULL) {
        return false;
    }
    const int step = sqlite3_step(statement);
    *number = step == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    const bool good = step == SQLITE_ROW || step == SQLITE_DONE;
    if (!good) {
        store_fail(store, "cannot read", errors);
    }
    sqlite3_finalize(statement);
    return good;
}

bool store_on_network(const char *path)
{
    /* Magic numbers of statfs(2): NFS, SMB, CIFS, Lustre, GPFS, BeeGFS, Ceph, FUSE. */
    static const long network[] = {0x6969,     0x517b,     0xff534d42, 0x0bd00bd0,
                                   0x47504653, 0x19830326, 0x00c36400, 0x65735546};
    char folder[4096];
    const char *slash = strrchr(path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    struct statfs info;
    if (statfs(length > 0 ? folder : ".", &info) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof network / sizeof network[0]; i++) {
        if ((long)info.f_type == network[i]) {
            return true;
        }
    }
    return false;
}

/* Is it ours, and not newer than we are? */
static bool check_identity(struct store *store, struct error_list *errors)
{
    int64_t id = 0, version = 0, tables = 0;
    if (!store_number(store, "pragma application_id", &id, errors) ||
        !store_number(store, "pragma user_version", &version, errors) ||
        !store_number(store, "select count(*) from sqlite_master", &tables, errors)) {
        return false;
    }
    const bool empty = tables == 0 && id == 0;
    if (id != STORE_APPLICATION_ID && !(empty && store->mode == STORE_WRITE)) {
        error_add(errors, ERROR_database, at_path(store), NULL,
                  "this is no results database of stepsim; give a new file, or one that `stepsim "
                  "sweep` or `simulate --db` wrote");
        return false;
    }
    if (version > STORE_SCHEMA_VERSION) {
        error_add(
            errors, ERROR_database_version, at_path(store), NULL,
            "its schema is version %lld and this program knows up to %d; use a newer stepsim, "
            "or `stepsim export` of the one that wrote it",
            (long long)version, STORE_SCHEMA_VERSION);
        return false;
    }
    return true;
}

static bool prepare_writing(struct store *store, struct error_list *errors)
{
    store->wal = !store_on_network(store->path);
    const char *journal = store->wal ? "pragma journal_mode = wal" : "pragma journal_mode = delete";
    return store_exec(store, journal, errors) &&
           store_exec(store,
                      "pragma synchronous = normal; pragma cache_size = -65536;"
                      "pragma foreign_keys = on; pragma wal_autocheckpoint = 8000",
                      errors) &&
           store_migrate(store, errors);
}

/* Older files are read as they are, so far as their columns go. */
static bool prepare_reading(struct store *store, struct error_list *errors)
{
    sqlite3_db_config(store->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    return store_exec(store, "pragma query_only = on", errors);
}

/* A WAL file that its writer left behind cannot be read in a folder without write permission,
 * unless the file is said never to change. */
static int open_handle(struct store *store)
{
    if (store->mode == STORE_WRITE) {
        return sqlite3_open_v2(store->path, &store->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    }
    return sqlite3_open_v2(store->path, &store->handle, SQLITE_OPEN_READONLY, NULL);
}

struct store *store_open(const char *path, enum store_mode mode, struct arena *arena,
                         struct error_list *errors)
{
    struct store *store = ARENA_NEW(arena, struct store);
    *store = (struct store){.path = arena_strdup(arena, path), .mode = mode, .arena = arena};
    struct stat info;
    if (mode == STORE_READ && stat(path, &info) != 0) {
        error_add(errors, ERROR_file_not_found, at_path(store), NULL, "%s", strerror(errno));
        return NULL;
    }
    bool good = open_handle(store) == SQLITE_OK;
    if (!good) {
        store_fail(store, "cannot open", errors);
    }
    if (good) {
        sqlite3_busy_timeout(store->handle, BUSY_TIMEOUT_MS);
        good =
            check_identity(store, errors) &&
            (mode == STORE_WRITE ? prepare_writing(store, errors) : prepare_reading(store, errors));
    }
    if (!good) {
        sqlite3_close(store->handle);
        return NULL;
    }
    return store;
}

bool store_close(struct store *store, struct error_list *errors)
{
    if (store == NULL) {
        return true;
    }
    for (unsigned i = 0; i < TABLES; i++) {
        sqlite3_finalize(store->insert[i]);
    }
    bool good = true;
    if (store->mode == STORE_WRITE) {
        sqlite3_exec(store->handle, "pragma optimize", NULL, NULL, NULL);
        if (store->wal) {
            /* Another writer or reader keeps the WAL alive; the last one tidies up. */
            sqlite3_busy_timeout(store->handle, 100);
            const int code =
                sqlite3_exec(store->handle, "pragma journal_mode = delete", NULL, NULL, NULL);
            good = code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED ||
                   store_fail(store, "cannot close", errors);
        }
    }
    sqlite3_close(store->handle);
    return good;
}

const char *run_status_name(enum run_status status)
{
    static const char *const names[RUN_STATUS_COUNT] = {"ok", "does_not_fit", "rejected", "failed"};
    ASSERT(status < RUN_STATUS_COUNT);
    return names[status];
}
