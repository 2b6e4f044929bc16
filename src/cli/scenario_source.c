/*
 * scenario_source.c - the options that change a scenario, as the loader wants them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/text.h"

static const struct location nowhere = {NULL, 0, 0};

#define STDIN_BYTES_MAX ((size_t)17 * 1024 * 1024) /* above the limit of the loader */

static const char *read_stdin(struct cli *cli)
{
    struct text text = {0};
    char buffer[65536];
    size_t length = 0;
    while (text.length < STDIN_BYTES_MAX && (length = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
        text_add_bytes(&text, buffer, length);
    }
    const char *copy = NULL;
    if (ferror(stdin) != 0) {
        error_add(&cli->errors, ERROR_file_not_found, nowhere, NULL, "standard input: %s",
                  strerror(errno));
    } else if (memchr(text_string(&text), '\0', text.length) != NULL) {
        error_add(&cli->errors, ERROR_yaml_syntax, nowhere, NULL,
                  "standard input holds a NUL character; YAML is text");
    } else {
        copy = arena_strndup(cli->arena, text_string(&text), text.length);
    }
    text_free(&text);
    return copy;
}

/* "KEY=VALUE" to an override. */
static void add_override(struct cli *cli, const char *text, struct scenario_override *overrides,
                         uint32_t *count)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        error_add(&cli->errors, ERROR_usage, nowhere, "--set",
                  "\"%s\" is not KEY=VALUE, as in --set parallel.tp=8", text);
        return;
    }
    overrides[(*count)++] = (struct scenario_override){
        .key = arena_strndup(cli->arena, text, (size_t)(equals - text)),
        .value = equals + 1,
    };
}

/* A text as YAML takes it whatever is in it. */
static const char *quoted(struct cli *cli, const char *text)
{
    struct text yaml = {0};
    text_add(&yaml, "'");
    for (; *text != '\0'; text++)
        text_add_bytes(&yaml, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
    text_add(&yaml, "'");
    const char *copy = arena_strndup(cli->arena, text_string(&yaml), yaml.length);
    text_free(&yaml);
    return copy;
}

bool scenario_source_of(struct cli *cli, const struct scenario_ask *ask,
                        struct scenario_source *source)
{
    const size_t errors_before = cli->errors.count;
    struct scenario_override *overrides =
        ARENA_ARRAY(cli->arena, ask->set.count + 2, struct scenario_override);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ask->set.count; i++) {
        add_override(cli, ask->set.items[i], overrides, &count);
    }
    if (ask->seeded) {
        overrides[count++] = (struct scenario_override){
            .key = "seed",
            .value = arena_printf(cli->arena, "%llu", (unsigned long long)ask->seed)};
    }
    if (ask->host_file != NULL) {
        overrides[count++] = (struct scenario_override){.key = "parallel.hosts",
                                                        .value = quoted(cli, ask->host_file)};
    }
    *source = (struct scenario_source){
        .path = ask->path,
        .config_dir = cli->config_dir,
        .overrides = overrides,
        .override_count = count,
    };
    if (strcmp(ask->path, "-") == 0) {
        source->path = NULL;
        source->text = read_stdin(cli);
        source->text_name = "stdin";
    }
    return cli->errors.count == errors_before;
}

const struct scenario *load_scenario(struct cli *cli, const struct scenario_ask *ask)
{
    struct scenario_source source;
    if (!scenario_source_of(cli, ask, &source)) {
        return NULL;
    }
    return scenario_load(&source, cli->arena, &cli->errors);
}
