/*
 * hosts.c - files with one host per line, as launchers read them.
 *
 *     # comment
 *     worker-3 slots=8
 *     worker-1 slots=8      the classic form
 *     worker-7              a plain list: all devices of the node
 *
 * Either all lines say their slots or none does. Everything wrong is reported with its line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster_internal.h"

#include "stepsim/quantity.h"

#define HOSTS_MAX 1000000u
#define LINE_SIZE 512

struct reader {
    const struct cluster_input *input;
    const char *key;
    struct host_list *hosts;
    uint32_t capacity, line;
};

static struct location at_line(const struct reader *reader)
{
    return (struct location){reader->hosts->path, reader->line, 1};
}

/* A path in a file starts from that file's folder, one of an override from the current one. */
static const char *path_of(const struct cluster_input *input, const char *key, const char *file)
{
    const struct origin *origin = scenario_origin(input->scenario, key);
    const char *from = origin != NULL && origin->kind == ORIGIN_FILE ? origin->at.file : NULL;
    const char *slash = from != NULL ? strrchr(from, '/') : NULL;
    if (file[0] == '/' || slash == NULL)
        return file;
    return arena_printf(input->arena, "%.*s/%s", (int)(slash - from), from, file);
}

static void *grown(const struct reader *reader, const void *old, uint32_t capacity, size_t size)
{
    void *data = arena_calloc(reader->input->arena, capacity, size);
    if (reader->hosts->count > 0)
        memcpy(data, old, reader->hosts->count * size);
    return data;
}

static void add_host(struct reader *reader, const char *name, uint32_t slots)
{
    struct host_list *hosts = reader->hosts;
    if (hosts->count == reader->capacity) {
        reader->capacity = reader->capacity ? reader->capacity * 2 : 64;
        hosts->names = grown(reader, hosts->names, reader->capacity, sizeof *hosts->names);
        hosts->slots = grown(reader, hosts->slots, reader->capacity, sizeof *hosts->slots);
        hosts->lines = grown(reader, hosts->lines, reader->capacity, sizeof *hosts->lines);
    }
    hosts->names[hosts->count] = arena_strndup(reader->input->arena, name, strlen(name));
    hosts->slots[hosts->count] = slots;
    hosts->lines[hosts->count++] = reader->line;
}

/* The number behind "slots="; 0, refused, if it is none. */
static uint32_t slots_of(const struct reader *reader, const char *word)
{
    struct quantity_problem problem;
    uint64_t slots = 0;
    if (strncmp(word, "slots=", 6) == 0 &&
        quantity_parse_uint(word + 6, HOSTS_MAX, &slots, &problem) && slots > 0)
        return (uint32_t)slots;
    error_add(reader->input->errors, ERROR_bad_value, at_line(reader), reader->key,
              "\"%s\" is not the slots of a host; a line is `host slots=8` or `host`", word);
    return 0;
}

static void read_line(struct reader *reader, char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    char *rest = NULL;
    const char *name = strtok_r(line, " \t", &rest);
    const char *slots = strtok_r(NULL, " \t", &rest);
    const char *more = strtok_r(NULL, " \t", &rest);
    if (name == NULL)
        return;
    if (more != NULL)
        error_add(reader->input->errors, ERROR_bad_value, at_line(reader), reader->key,
                  "\"%s\" stands behind the slots of host %s; a line is `host slots=8` or `host`",
                  more, name);
    const bool said = reader->hosts->count > 0 && reader->hosts->slots[0] > 0;
    if (reader->hosts->count > 0 && said != (slots != NULL))
        error_add(reader->input->errors, ERROR_bad_value, at_line(reader), reader->key,
                  "host %s has %s slots=N, unlike line %u; all lines say their slots or none does",
                  name, slots == NULL ? "no" : "a", reader->hosts->lines[0]);
    add_host(reader, name, slots != NULL ? slots_of(reader, slots) : 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(**(const char *const *const *)a, **(const char *const *const *)b);
}

/* Sorted by name, equal ones are neighbours; the later line is told. */
static void check_twice(const struct reader *reader)
{
    const struct host_list *hosts = reader->hosts;
    const char ***sorted = ARENA_ARRAY(reader->input->arena, hosts->count, const char **);
    for (uint32_t i = 0; i < hosts->count; i++)
        sorted[i] = &hosts->names[i];
    qsort(sorted, hosts->count, sizeof *sorted, by_name);
    for (uint32_t i = 1; i < hosts->count; i++) {
        if (strcmp(*sorted[i - 1], *sorted[i]) != 0)
            continue;
        const uint32_t a = hosts->lines[sorted[i - 1] - hosts->names];
        const uint32_t b = hosts->lines[sorted[i] - hosts->names];
        const struct location at = {hosts->path, a > b ? a : b, 1};
        error_add(reader->input->errors, ERROR_conflicting_keys, at, reader->key,
                  "host %s stands on line %u already; each host once", *sorted[i], a < b ? a : b);
    }
}

bool hosts_read(const struct cluster_input *input, const char *key, const char *file,
                struct host_list *hosts)
{
    const size_t before = input->errors->count;
    *hosts = (struct host_list){.path = path_of(input, key, file)};
    struct reader reader = {.input = input, .key = key, .hosts = hosts};
    FILE *stream = fopen(hosts->path, "rb");
    if (stream == NULL) {
        error_add(input->errors, ERROR_file_not_found, scenario_at(input->scenario, key), key,
                  "%s: %s", hosts->path, strerror(errno));
        return false;
    }
    char line[LINE_SIZE];
    while (fgets(line, sizeof line, stream) != NULL && input->errors->count == before) {
        reader.line++;
        if (strlen(line) + 1 == sizeof line || hosts->count == HOSTS_MAX)
            error_add(
                input->errors, ERROR_bad_value, at_line(&reader), key,
                "this is no list of hosts: a line of more than %d bytes, or more than %u hosts",
                LINE_SIZE - 2, HOSTS_MAX);
        else
            read_line(&reader, line);
    }
    fclose(stream);
    if (hosts->count == 0 && input->errors->count == before)
        error_add(input->errors, ERROR_bad_value, (struct location){hosts->path, 0, 0}, key,
                  "the file holds no host; a line is `host slots=8` or `host`");
    check_twice(&reader);
    return input->errors->count == before;
}
