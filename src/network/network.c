/*
 * network.c - finds models by name.
 */
#include "stepsim/network.h"

#include <string.h>

const struct network *network_find(const char *name)
{
    for (size_t i = 0; i < network_count; i++)
        if (strcmp(network_registry[i]->name, name) == 0)
            return network_registry[i];
    return NULL;
}
