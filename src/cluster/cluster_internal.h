/* cluster_internal.h - shared by the files of src/cluster only. */
#ifndef CLUSTER_INTERNAL_H
#define CLUSTER_INTERNAL_H

#include "stepsim/cluster.h"

/* Lines of a file of hosts (hosts.c). */
struct host_list {
    const char *path;
    const char **names;
    uint32_t *slots; /* 0: not said */
    uint32_t *lines;
    uint32_t count;
};

/* What every step of cluster_build() reads. */
struct cluster_input {
    const struct scenario *scenario;
    struct arena *arena;
    struct error_list *errors;
    struct host_list hosts; /* of parallel.hosts; count 0: none */
};

/* Devices in one domain of a level of the cluster file; that of `all` holds all there are. */
uint32_t cluster_domain_size(const struct cluster *cluster, uint32_t level);

/* ---- hosts.c: files with one host per line ---- */

/* Reads the file that `key` names; false with errors added. */
bool hosts_read(const struct cluster_input *input, const char *key, const char *file,
                struct host_list *hosts);

/* ---- faults.c: broken and slow parts by name ---- */

/* Fills faults from the scenario; false with errors added. Needs the capacity. */
bool faults_resolve(const struct cluster_input *input, struct cluster *cluster);

/* ---- places.c: which device every rank has ---- */

/* Fills capacity, node_names and the hosts of the input; false with errors added. */
bool places_count(struct cluster_input *input, struct cluster *cluster);
/* Fills device_of and by_device, past broken nodes and in the order of a file of hosts; false
 * with errors added. */
bool places_resolve(const struct cluster_input *input, struct cluster *cluster);

#endif
