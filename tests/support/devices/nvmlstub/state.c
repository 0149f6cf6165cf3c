#include "state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct state now;

static const struct { const char *name; size_t at; } KEYS[] = {
#define KEY(name) { #name, offsetof(struct gpu, name) }
    KEY(minor), KEY(major), KEY(cc_minor), KEY(lost), KEY(temperature), KEY(slowdown), KEY(margin),
    KEY(slow_tlimit), KEY(utilisation), KEY(used), KEY(reserved), KEY(power), KEY(limit), KEY(sm_clock), KEY(sbe),
    KEY(dbe), KEY(remapped), KEY(remap_pending), KEY(remap_failed), KEY(recovery),
    KEY(mig_capable), KEY(mig), KEY(mig_pending), KEY(mig_needs_reset), KEY(places_told),
    KEY(in_use), KEY(fabric), KEY(fabric_status), KEY(clique), KEY(mask), KEY(summary),
#undef KEY
};

static struct gpu *gpu_of(int index) {
    if (index < 0 || index >= MOST_GPUS) { fprintf(stderr, "nvmlstub: GPU %d\n", index); abort(); }
    return &now.gpu[index];
}

static void read_gpu(const char *line) {
    int index = 0, at = 0;
    char uuid[96], pci[32];
    unsigned id;
    unsigned long long memory;
    if (sscanf(line, "gpu %d %95s %31s %x %llu %n", &index, uuid, pci, &id, &memory, &at) < 5) return;
    struct gpu *gpu = gpu_of(index);
    *gpu = (struct gpu){ .there = 1, .index = index, .device_id = id, .memory_mib = memory,
                         .minor = index, .major = 9, .in_use = -1, .places_told = 1,
                         .temperature = 40, .slowdown = 89, .power = 100000, .limit = 700000,
                         .sm_clock = 1980, .margin = 47 };
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", uuid);
    snprintf(gpu->pci, sizeof gpu->pci, "%s", pci);
    snprintf(gpu->name, sizeof gpu->name, "%s", line + at);
    if (index >= now.gpus) now.gpus = index + 1;
}

static void set_key(int index, const char *key, int value) {
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (!strcmp(KEYS[i].name, key)) {
            *(int *)((char *)gpu_of(index) + KEYS[i].at) = value;
            return;
        }
    fprintf(stderr, "nvmlstub: no key %s\n", key);
    abort();
}

static void read_line(char *line) {
    char word[64];
    int a, b, c, d;
    unsigned e, f;
    unsigned long long g, h;
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "gpu ", 4)) read_gpu(line);
    else if (sscanf(line, "driver %79s", now.driver) == 1) return;
    else if (sscanf(line, "cuda %d", &now.cuda) == 1) return;
    else if (sscanf(line, "init %d", &now.init) == 1) return;
    else if (sscanf(line, "hang %63s", word) == 1) strcpy(now.hang[now.hangs++].function, word);
    else if (sscanf(line, "fail %63s %d %d", word, &a, &b) == 3) {
        struct rule *rule = &now.fail[now.fails++];
        strcpy(rule->function, word);
        rule->gpu = a, rule->code = b;
    } else if (sscanf(line, "set %d %63s %d", &a, word, &b) == 3) set_key(a, word, b);
    else if (sscanf(line, "cluster %d %32s", &a, word) == 2) strcpy(gpu_of(a)->cluster, word);
    else if (sscanf(line, "link %d %d %d %d %31s", &a, &b, &c, &d, word) == 5) {
        struct link *link = &gpu_of(a)->links[b];
        link->there = 1, link->active = c, link->type = d;
        strcpy(link->pci, word);
    } else if (sscanf(line, "xid %d %d %llu %u %u", &a, &b, &h, &e, &f) == 5)
        now.event[now.events++] = (struct event){ a, b, 8, h, e, f };
    else if (sscanf(line, "event %d %d %llu %llu", &a, &b, &g, &h) == 4)
        now.event[now.events++] = (struct event){ a, b, g, h, ~0u, ~0u };
    else if (sscanf(line, "system %d %llu", &a, &g) == 2)
        now.system_event[now.system_events++] = (struct event){ .serial = a, .type = g };
}

static FILE *open_state(const char *suffix, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", getenv("NVMLSTUB") ? getenv("NVMLSTUB") : "", suffix);
    return fopen(path, mode);
}

static void read_state(void) {
    char line[512];
    memset(&now, 0, sizeof now);
    FILE *file = open_state("", "r");
    if (!file) { fprintf(stderr, "nvmlstub: $NVMLSTUB names no file\n"); abort(); }
    while (fgets(line, sizeof line, file)) read_line(line);
    fclose(file);
    if (!(file = open_state(".mig", "r"))) return;
    struct instance i;
    while (fscanf(file, "%d %d %d %d %d %d", &i.gpu, &i.gi, &i.profile, &i.start, &i.size, &i.ci) == 6)
        now.instance[now.instances++] = i;
    fclose(file);
}

void keep_instances(void) {
    FILE *file = open_state(".mig", "w");
    for (int i = 0; file && i < now.instances; i++) {
        struct instance *it = &now.instance[i];
        fprintf(file, "%d %d %d %d %d %d\n", it->gpu, it->gi, it->profile, it->start, it->size, it->ci);
    }
    if (file) fclose(file);
}

/* Add a statement, as when a call changed the machine. */
int append_state(const char *line) {
    FILE *file = open_state("", "a");
    if (!file) return INVALID;
    fputs(line, file);
    fclose(file);
    return OK;
}

int enter(const char *function, int gpu) {
    read_state();
    for (int i = 0; i < now.hangs; i++)
        while (!strcmp(now.hang[i].function, function)) pause();
    for (int i = 0; i < now.fails; i++)
        if (!strcmp(now.fail[i].function, function) && (now.fail[i].gpu < 0 || now.fail[i].gpu == gpu))
            return now.fail[i].code;
    if (gpu >= 0 && !now.gpu[gpu].there) return LOST;
    return gpu >= 0 ? now.gpu[gpu].lost : OK;
}
