/* A point written is the point read: columns of keys and metrics, child rows, patches. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "assert_close.h"
#include "report_fixture.h"
#include "stepsim/metric.h"
#include "stepsim/store.h"

static struct report_fixture fixture;
static char path[64];

static int setup(void **state)
{
    (void)state;
    fixture_init(&fixture, (sim_time)2e12);
    snprintf(path, sizeof path, "/tmp/stepsim-store-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    arena_destroy(fixture.arena);
    return 0;
}

static const struct store_sweep sweep = {
    .kind = "sweep", .name = "test", .hash = "h", .definition = "{}", .points_total = 9};
static const struct store_invocation invocation = {.command_line = "test", .jobs = 1};

static struct store *open_for_writing(void)
{
    struct store *store = store_open(path, STORE_WRITE, fixture.arena, &fixture.errors);
    assert_non_null(store);
    assert_true(store_begin_sweep(store, &sweep, &invocation, &fixture.errors));
    return store;
}

/* One cell of the closed file. */
static struct store_cell ask(const char *sql)
{
    struct store *store = store_open(path, STORE_READ, fixture.arena, &fixture.errors);
    assert_non_null(store);
    struct store_query *query = store_query_open(store, sql, NULL, 0, &fixture.errors);
    assert_non_null(query);
    assert_true(store_query_next(query, &fixture.errors));
    struct store_cell cell = store_query_cell(query, 0);
    cell.text = cell.text != NULL ? arena_strdup(fixture.arena, cell.text) : NULL;
    store_query_close(query);
    store_close(store, &fixture.errors);
    return cell;
}

static struct store_point point_of(const struct report *report)
{
    return (struct store_point){.point_no = 7,
                                .status = RUN_OK,
                                .scenario = fixture.scenario,
                                .report = report,
                                .layout_no = -1};
}

static void write_once(const struct store_point *point)
{
    struct store *store = open_for_writing();
    struct text packed = {0};
    store_pack(&packed, point, fixture.arena);
    assert_true(store_write(store, &packed, &fixture.errors));
    assert_true(store_end_sweep(store, true, &fixture.errors));
    assert_true(store_close(store, &fixture.errors));
    text_free(&packed);
}

static void every_metric_comes_back(void **state)
{
    (void)state;
    const struct report *report = fixture_report(&fixture);
    const struct store_point point = point_of(report);
    write_once(&point);
    for (size_t i = 0; i < metric_count; i++) {
        const char *column = store_column_of(metric_table[i].name, fixture.arena);
        if (column == NULL) {
            assert_string_equal(metric_table[i].name, "engine.wall_s");
            continue;
        }
        const char *sql = arena_printf(fixture.arena, "select %s from runs", column);
        const struct store_cell cell = ask(sql);
        const double value = metric_table[i].value(report);
        const double stored = cell.kind == STORE_INTEGER ? (double)cell.integer : cell.real;
        assert_true(cell.kind == STORE_INTEGER || cell.kind == STORE_REAL);
        assert_true(stored >= value && stored <= value);
    }
}

/* The values of fixture_text. */
static void keys_have_columns(void **state)
{
    (void)state;
    const struct store_point point = point_of(fixture_report(&fixture));
    write_once(&point);
    assert_int_equal(ask("select model_layers from runs").integer, 2);
    assert_int_equal(ask("select parallel_pp from runs").integer, 2);
    assert_string_equal(ask("select schedule_kind from runs").text, "1f1b");
    assert_string_equal(ask("select model_attention_kind from runs").text, "mha");
    assert_string_equal(ask("select cluster_device from runs").text, "ascend_910b3");
    assert_int_equal(ask("select parallel_sequence_parallel from runs").integer, 1);
    assert_int_equal(ask("select coalesce(model_moe_experts, 0) from runs").integer, 0);
    assert_int_equal(ask("select run_id from runs").integer, (INT64_C(1) << 32) + 7);
    assert_int_equal(ask("select count(*) from stages").integer, 2);
    assert_int_equal(ask("select count(*) from steps").integer, 1);
}

static void twice_is_once(void **state)
{
    (void)state;
    const struct store_point point = point_of(fixture_report(&fixture));
    write_once(&point);
    struct store_point other = point;
    other.status = RUN_FAILED; /* what is there stays */
    write_once(&other);
    assert_int_equal(ask("select count(*) from runs").integer, 1);
    assert_string_equal(ask("select status from runs").text, "ok");
    assert_int_equal(ask("select count(*) from stages").integer, 2);
    assert_int_equal(ask("select count(*) from sweeps").integer, 1);
    assert_int_equal(ask("select count(*) from invocations").integer, 2);
}

/* Swept values: numbers, quantities in SI, texts. 64 GiB is 64 * 2^30 bytes. */
static void swept_values(void **state)
{
    (void)state;
    const struct store_key keys[] = {{"parallel.pp", "2"},
                                     {"memory.reserve", "64 GiB"},
                                     {"schedule.kind", "1f1b"},
                                     {"helper", "2.5"}};
    struct store_point point = point_of(NULL);
    point.status = RUN_REJECTED;
    point.code = "x";
    point.keys = keys;
    point.key_count = 4;
    write_once(&point);
    assert_int_equal(ask("select value from run_keys where key = 'parallel.pp'").integer, 2);
    assert_close(ask("select value from run_keys where key = 'memory.reserve'").real, 68719476736.0,
                 1e-15);
    assert_string_equal(ask("select value from run_keys where key = 'schedule.kind'").text, "1f1b");
    assert_close(ask("select value from run_keys where key = 'helper'").real, 2.5, 1e-15);
    assert_int_equal(ask("select step_time_s is null from runs").integer, 1);
}

/* A patch on the base gives the resolved scenario back. */
static void patches(void **state)
{
    (void)state;
    const struct scenario_override changed = {"parallel.pp", "1"};
    const struct scenario_source source = {
        .text = fixture_text, .text_name = "t", .overrides = &changed, .override_count = 1};
    struct scenario *other = scenario_load(&source, fixture.arena, &fixture.errors);
    assert_non_null(other);
    struct store_base *base = store_base_create(fixture.scenario, fixture.arena);
    struct store_point point = point_of(NULL);
    point.status = RUN_REJECTED;
    point.scenario = other;
    point.base = base;
    write_once(&point);
    assert_string_equal(ask("select scenario_patch from runs").text, "{\"parallel\":{\"pp\":1}}");
    assert_string_equal(ask("select model_hash from runs").text, base->model_hash);
    assert_string_equal(ask("select scenario_hash from runs").text,
                        scenario_hash(other, fixture.arena));
    store_base_destroy(base);
}

static void a_query_cannot_write(void **state)
{
    (void)state;
    const struct store_point point = point_of(NULL);
    write_once(&point);
    struct store *store = store_open(path, STORE_READ, fixture.arena, &fixture.errors);
    static const char *const statements[] = {"delete from runs",
                                             "pragma user_version = 9",
                                             "attach 'x' as y",
                                             "drop table runs",
                                             "select 1; select 2",
                                             "create table t (x)",
                                             "select load_extension('x')",
                                             ""};
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        struct error_list errors;
        error_list_init(&errors, fixture.arena);
        assert_null(store_query_open(store, statements[i], NULL, 0, &errors));
        assert_int_equal(errors.items[0].code, ERROR_database_query);
    }
    store_close(store, &fixture.errors);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_metric_comes_back),
        TEST(keys_have_columns),
        TEST(twice_is_once),
        TEST(swept_values),
        TEST(patches),
        TEST(a_query_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
