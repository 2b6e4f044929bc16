/*
 * schedule.c - finding a schedule by its name in YAML. The build generates the registry.
 */
#include <string.h>

#include "stepsim/schedule.h"

const struct schedule *schedule_find(const char *name)
{
    ASSERT(name != NULL);
    for (size_t i = 0; schedule_registry[i] != NULL; i++)
        if (strcmp(schedule_registry[i]->name, name) == 0)
            return schedule_registry[i];
    return NULL;
}
