/*
 * config_dir.c - where models/, devices/ and clusters/ are.
 *
 * An installed program finds them beside itself (../share/stepsim/configs); a program in a
 * build folder uses those of its source tree. The variable STEPSIM_CONFIG_DIR and the
 * option --config-dir come before both.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"

#define PATH_BYTES_MAX 4096

const char *config_dir_default(struct cli *cli)
{
    const char *variable = getenv("STEPSIM_CONFIG_DIR");
    if (variable != NULL && variable[0] != '\0') {
        return variable;
    }
    char program[PATH_BYTES_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        *(slash != NULL ? slash : program) = '\0';
        const char *installed =
            arena_printf(cli->arena, "%s/%s", program, STEPSIM_INSTALLED_CONFIG_DIR);
        if (access(installed, R_OK) == 0) {
            return installed;
        }
    }
    return STEPSIM_CONFIG_DIR;
}
