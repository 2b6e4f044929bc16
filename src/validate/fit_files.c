/*
 * fit_files.c - reads the types of configs/calibration.yaml and writes values back into device
 * files.
 *
 * A device file keeps its lines: only the fact lines of fitted keys are replaced, and the entry
 * `calibrated` of x-sources. A fact that spans several lines is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/calibrate.h"
#include "stepsim/text.h"
#include "stepsim/yaml_tree.h"
#include "validate_internal.h"

/* ---- Reading ---- */

static double number(const struct yaml_tree *map, const char *key, double fallback)
{
    const struct yaml_tree *value = yaml_tree_get(map, key);
    return value != NULL ? strtod(value->text, NULL) : fallback;
}

static void read_constants(const struct yaml_tree *map, struct fit_type *type)
{
    for (uint32_t i = 0; map != NULL && i < map->count && i < CONSTANTS_MAX; i++) {
        const struct yaml_tree *entry = map->entries[i].value;
        const struct yaml_tree *unit = yaml_tree_get(entry, "unit");
        type->constants[type->constant_count++] = (struct fit_constant){
            .key = map->entries[i].key,
            .unit = unit != NULL ? unit->text : "",
            .prior = number(entry, "prior", 1.0),
            .spread = number(entry, "spread", 1.0),
            .low = number(entry, "low", 0.1),
            .high = number(entry, "high", 10.0),
            .value = number(entry, "prior", 1.0),
        };
    }
}

static void read_devices(const struct yaml_tree *list, struct fit_type *type)
{
    for (uint32_t i = 0; list != NULL && i < list->count && i < DEVICES_MAX; i++)
        type->devices[type->device_count++] = list->items[i]->text;
}

/* Of the rows that take part the first type that wants a row has it. */
static bool excluded(const struct measurement *row, const struct yaml_tree *root)
{
    const struct yaml_tree *list = yaml_tree_get(root, "exclude");
    bool out = !measurement_eligible(row) || row->step_s <= 0.0;
    for (uint32_t i = 0; list != NULL && i < list->count; i++)
        out = out || table_applies(row, list->items[i]);
    return out;
}

static void deal(struct fit *fit, const struct yaml_tree *types, const struct measurement *row)
{
    for (uint32_t t = 0; t < fit->type_count; t++) {
        struct fit_type *type = &fit->types[t];
        if (table_applies(row, types->entries[t].value)) {
            type->rows[type->row_count++] = row;
            return;
        }
    }
}

struct fit *fit_read(const char *config_dir, const struct measurement_set *const *sets,
                     uint32_t set_count, struct arena *arena, struct error_list *errors)
{
    const struct yaml_tree *root =
        yaml_tree_read(arena_printf(arena, "%s/calibration.yaml", config_dir), arena, errors);
    struct fit *fit = ARENA_NEW(arena, struct fit);
    fit->config_dir = config_dir;
    fit->arena = arena;
    fit->jobs = 1;
    fit->tables = mapping_tables(config_dir, arena, errors);
    const struct yaml_tree *types = root != NULL ? yaml_tree_get(root, "types") : NULL;
    if (types == NULL || fit->tables == NULL)
        return NULL;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < set_count; i++)
        rows += sets[i]->count;
    fit->types = ARENA_ARRAY(arena, types->count + 1, struct fit_type);
    fit->type_count = types->count;
    for (uint32_t t = 0; t < types->count; t++) {
        fit->types[t].name = types->entries[t].key;
        fit->types[t].rows = ARENA_ARRAY(arena, rows + 1, const struct measurement *);
        read_devices(yaml_tree_get(types->entries[t].value, "devices"), &fit->types[t]);
        read_constants(yaml_tree_get(types->entries[t].value, "constants"), &fit->types[t]);
    }
    for (uint32_t i = 0; i < set_count; i++)
        for (uint32_t j = 0; j < sets[i]->count; j++)
            if (!excluded(&sets[i]->rows[j], root))
                deal(fit, types, &sets[i]->rows[j]);
    return fit;
}

/* ---- Writing ---- */

static const struct fit_constant *constant_of_line(const struct fit_type *type, const char *line)
{
    for (uint32_t i = 0; i < type->constant_count; i++) {
        const size_t length = strlen(type->constants[i].key);
        if (strncmp(line, type->constants[i].key, length) == 0 &&
            strncmp(line + length, ": {value:", 9) == 0)
            return &type->constants[i];
    }
    return NULL;
}

static void add_source(const struct fit_type *type, struct text *out)
{
    text_add(out,
             "  calibrated: &calibrated >-\n"
             "    fitted to whole published runs of the type %s by `stepsim calibrate "
             "tests/data/measurements.csv\n"
             "    tests/data/ascend-runs.csv`; priors and bounds in configs/calibration.yaml, "
             "residuals in docs/VALIDATION.md\n",
             type->name);
}

/* Copies the file line by line with the facts replaced; the number of facts that were. */
static uint32_t rewrite(const struct fit_type *type, FILE *in, struct text *out)
{
    char *line = NULL;
    size_t capacity = 0;
    uint32_t replaced = 0;
    bool old_source = false;
    while (getline(&line, &capacity, in) > 0) {
        const struct fit_constant *constant = constant_of_line(type, line);
        if (strncmp(line, "  calibrated: ", 14) == 0) {
            old_source = true; /* the entry goes on while lines are deeper */
        } else if (old_source && strncmp(line, "    ", 4) == 0) {
            continue;
        } else if (constant != NULL) {
            text_add(out, "%s: {value: %.3g%s%s, source: *calibrated, grade: fitted}\n",
                     constant->key, constant->value, constant->unit[0] != '\0' ? " " : "",
                     constant->unit);
            replaced++;
        } else {
            old_source = false;
            text_add(out, "%s", line);
            if (strncmp(line, "x-sources:", 10) == 0)
                add_source(type, out);
        }
    }
    free(line);
    return replaced;
}

static bool write_device(const struct fit *fit, const struct fit_type *type, const char *device,
                         struct error_list *errors)
{
    const char *path = arena_printf(fit->arena, "%s/devices/%s.yaml", fit->config_dir, device);
    const struct location at = {path, 0, 0};
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        error_add(errors, ERROR_file_not_found, at, NULL, "%s", strerror(errno));
        return false;
    }
    struct text out = {0};
    const uint32_t replaced = rewrite(type, in, &out);
    fclose(in);
    FILE *file = replaced == type->constant_count ? fopen(path, "w") : NULL;
    if (replaced != type->constant_count)
        error_add(errors, ERROR_missing_key, at, NULL,
                  "%u of %u fitted constants stand on a line `key: {value: ...`", replaced,
                  type->constant_count);
    else if (file == NULL)
        error_add(errors, ERROR_file_not_writable, at, NULL, "%s", strerror(errno));
    bool good = file != NULL && fputs(text_string(&out), file) >= 0;
    if (file != NULL && fclose(file) != 0)
        good = false;
    text_free(&out);
    return good;
}

bool fit_write(const struct fit *fit, const struct fit_type *type, struct error_list *errors)
{
    bool good = true;
    for (uint32_t i = 0; i < type->device_count; i++)
        good = write_device(fit, type, type->devices[i], errors) && good;
    return good;
}
