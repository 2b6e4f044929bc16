/* test_hosts.c - files of hosts: what they may say, and what is refused with its line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "assert_refused.h"
#include "cluster/cluster_internal.h"
#include "scenario_builder.h"

static struct arena *arena;
static struct error_list errors;

static bool read_text(const char *text, struct host_list *hosts)
{
    char path[] = "/tmp/stepsim-hosts-XXXXXX";
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "wb");
    fputs(text, file);
    fclose(file);
    static struct scenario scenario;
    scenario = builder_scenario();
    error_list_init(&errors, arena);
    const struct cluster_input input = {.scenario = &scenario, .arena = arena, .errors = &errors};
    const bool good = hosts_read(&input, "parallel.hosts", path, hosts);
    unlink(path);
    return good;
}

static void assert_line(const char *text, uint32_t line, const char *message)
{
    struct host_list hosts;
    assert_false(read_text(text, &hosts));
    assert_int_equal(errors.items[0].at.line, line);
    if (strstr(errors.items[0].message, message) == NULL)
        fail_msg("%s", errors.items[0].message);
}

static void both_forms_are_read(void **state)
{
    (void)state;
    struct host_list hosts;
    assert_true(read_text("# racks\nw-3 slots=8\n\n  w-1\tslots=4   # half\r\n", &hosts));
    assert_int_equal(hosts.count, 2);
    assert_string_equal(hosts.names[0], "w-3");
    assert_string_equal(hosts.names[1], "w-1");
    assert_int_equal(hosts.slots[0], 8);
    assert_int_equal(hosts.slots[1], 4);
    assert_int_equal(hosts.lines[1], 4);
    assert_true(read_text("a\nb\nc", &hosts)); /* no end of line */
    assert_int_equal(hosts.count, 3);
    assert_int_equal(hosts.slots[2], 0);
}

static void mistakes_have_a_line(void **state)
{
    (void)state;
    assert_line("a slots=8\nb slots=8\na slots=8\n", 3, "line 1 already");
    assert_line("a slots=8\nb\n", 2, "no slots=N");
    assert_line("a\nb slots=8\n", 2, "a slots=N");
    assert_line("a slots=\n", 1, "is not the slots");
    assert_line("a slots=0\n", 1, "is not the slots");
    assert_line("a slots=8x\n", 1, "is not the slots");
    assert_line("a 8\n", 1, "is not the slots");
    assert_line("a slots=8 b\n", 1, "stands behind");
    assert_line("# nothing\n\n", 0, "holds no host");
    char endless[1024];
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    assert_line(endless, 1, "no list of hosts");
}

static void a_missing_file_is_told(void **state)
{
    (void)state;
    struct host_list hosts;
    const struct scenario scenario = builder_scenario();
    error_list_init(&errors, arena);
    const struct cluster_input input = {.scenario = &scenario, .arena = arena, .errors = &errors};
    assert_false(hosts_read(&input, "parallel.hosts", "/nowhere/hosts", &hosts));
    assert_refused(&errors, ERROR_file_not_found, "/nowhere/hosts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_are_read),
        cmocka_unit_test(mistakes_have_a_line),
        cmocka_unit_test(a_missing_file_is_told),
    };
    arena = arena_create("test");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
