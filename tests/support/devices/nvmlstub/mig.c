/* MIG of the stub: eight memory slices and seven compute slices, as A100, H100 and later have. */
#include "state.h"

#include <stdio.h>
#include <string.h>

#define MOST_GI 16
static char gi_handles[MOST_GPUS][MOST_GI], ci_handles[MOST_GPUS][MOST_GI], devices[MOST_GPUS][MOST_GI];
extern int gpu_index(void *handle);

static const struct profile { int kind, id, compute, size, most, starts, start[7]; } PROFILES[] = {
    { 0, 19, 1, 1, 7, 7, { 0, 1, 2, 3, 4, 5, 6 } },
    { 1, 14, 2, 2, 3, 3, { 0, 2, 4 } },
    { 2, 9, 3, 4, 2, 2, { 0, 4 } },
    { 3, 5, 4, 4, 1, 1, { 0 } },
    { 4, 0, 7, 8, 1, 1, { 0 } },
    { 7, 20, 1, 1, 1, 7, { 0, 1, 2, 3, 4, 5, 6 } },
    { 9, 15, 1, 2, 4, 4, { 0, 2, 4, 6 } },
};
#define PROFILE_COUNT (sizeof PROFILES / sizeof *PROFILES)

static const struct profile *profile_by(int id) {
    for (unsigned i = 0; i < PROFILE_COUNT; i++)
        if (PROFILES[i].id == id) return &PROFILES[i];
    return NULL;
}

/* What instances of an H100 (81559 MiB) have, by their size; of others in proportion. */
static unsigned long long memory_of(int gpu, int size) {
    unsigned long long mib = size == 1 ? 9984 : size == 2 ? 20096 : size == 4 ? 40448 : 81152;
    return mib * now.gpu[gpu].memory_mib / 81559;
}

static struct instance *instance_of(int gpu, int gi) {
    for (int i = 0; i < now.instances; i++)
        if (now.instance[i].gpu == gpu && now.instance[i].gi == gi) return &now.instance[i];
    return NULL;
}

static int found(void *handle, char handles[MOST_GPUS][MOST_GI], int *gpu, int *gi) {
    long at = (char *)handle - &handles[0][0];
    if (at < 0 || at >= MOST_GPUS * MOST_GI) return 0;
    *gpu = (int)(at / MOST_GI), *gi = (int)(at % MOST_GI);
    return 1;
}

int mig_device_of(void *handle, int *gpu, int *gi, int *ci) {
    *ci = 0;
    return found(handle, devices, gpu, gi);
}

int mig_uuid_of(int gpu, int gi, int ci, char *uuid, unsigned size) {
    struct instance *it = instance_of(gpu, gi);
    if (!it || it->ci < 0) return NOT_FOUND;
    snprintf(uuid, size, "MIG-%.23s-%08x%02x%02x", now.gpu[gpu].uuid + 4, 0x5eed, gi, ci);
    return OK;
}

void *mig_device_by_uuid(const char *uuid) {
    char told[96];
    for (int i = 0; i < now.instances; i++) {
        struct instance *it = &now.instance[i];
        if (!mig_uuid_of(it->gpu, it->gi, 0, told, sizeof told) && !strcmp(told, uuid))
            return &devices[it->gpu][it->gi];
    }
    return NULL;
}

#define ON_GPU(handle) \
    int gpu = gpu_index(handle); \
    int code = enter(__func__, gpu); \
    if (code) return code; \
    if (!now.gpu[gpu].mig_capable) return NOT_SUPPORTED
#define ON_GI(handle) \
    int gpu = 0, gi = 0; \
    if (!found(handle, gi_handles, &gpu, &gi)) return INVALID; \
    int code = enter(__func__, gpu); \
    if (code) return code; \
    struct instance *it = instance_of(gpu, gi); \
    if (!it) return NOT_FOUND

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    ON_GPU(handle);
    *current = (unsigned)now.gpu[gpu].mig;
    *pending = (unsigned)(now.gpu[gpu].mig_needs_reset ? now.gpu[gpu].mig_pending : now.gpu[gpu].mig);
    return OK;
}
int nvmlDeviceSetMigMode(void *handle, unsigned mode, int *activation) {
    ON_GPU(handle);
    char line[64];
    int reset = now.gpu[gpu].mig_needs_reset;
    for (int i = 0; i < now.instances; i++)
        if (now.instance[i].gpu == gpu) return IN_USE;
    snprintf(line, sizeof line, "set %d %s %u\n", gpu, reset ? "mig_pending" : "mig", mode);
    *activation = reset ? RESET : OK;
    return append_state(line);
}

struct info { unsigned id, p2p, slices, instances, sms, copy, dec, enc, jpeg, ofa; unsigned long long mib; };
struct info_v2 { unsigned version; unsigned id, p2p, slices, instances, sms, copy, dec, enc, jpeg, ofa;
                 unsigned long long mib; char name[96]; };

static int profile_at(int kind) {
    for (unsigned i = 0; i < PROFILE_COUNT; i++)
        if (PROFILES[i].kind == kind) return (int)i;
    return -1;
}
int nvmlDeviceGetGpuInstanceProfileInfo(void *handle, unsigned kind, struct info *info) {
    ON_GPU(handle);
    int at = profile_at((int)kind);
    if (at < 0) return NOT_SUPPORTED;
    const struct profile *it = &PROFILES[at];
    *info = (struct info){ .id = (unsigned)it->id, .slices = (unsigned)it->compute,
                           .instances = (unsigned)it->most, .sms = (unsigned)it->compute * 16,
                           .copy = (unsigned)it->compute, .mib = memory_of(gpu, it->size) };
    return OK;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetGpuInstanceProfileInfoV(void *handle, unsigned kind, struct info_v2 *info) {
    struct info old;
    if (info->version != 0x02000098) return VERSION;
    int code = nvmlDeviceGetGpuInstanceProfileInfo(handle, kind, &old);
    if (code) return code;
    *info = (struct info_v2){ .version = info->version, .id = old.id, .slices = old.slices,
                              .instances = old.instances, .sms = old.sms, .copy = old.copy,
                              .mib = old.mib };
    return OK;
}
#endif

struct place { unsigned start, size; };

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(void *handle, unsigned id, struct place *places,
                                                  unsigned *count) {
    ON_GPU(handle);
    const struct profile *it = profile_by((int)id);
    if (!it || (!now.gpu[gpu].mig && !now.gpu[gpu].places_told)) return NOT_SUPPORTED;
    for (int i = 0; places && i < it->starts; i++)
        places[i] = (struct place){ (unsigned)it->start[i], (unsigned)it->size };
    *count = (unsigned)it->starts;
    return OK;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(void *handle, unsigned id, struct place *place, void **made) {
    ON_GPU(handle);
    const struct profile *profile = profile_by((int)id);
    int allowed = 0, same = 0, gi = 1;
    if (!profile || !now.gpu[gpu].mig) return NOT_SUPPORTED;
    for (int i = 0; i < profile->starts; i++) allowed |= profile->start[i] == (int)place->start;
    if (!allowed || (int)place->size != profile->size) return INVALID;
    for (int i = 0; i < now.instances; i++) {
        struct instance *it = &now.instance[i];
        if (it->gpu != gpu) continue;
        same += it->profile == (int)id;
        if (it->start < (int)(place->start + place->size) && (int)place->start < it->start + it->size)
            return NO_ROOM;
    }
    if (same >= profile->most) return NO_ROOM;
    while (instance_of(gpu, gi)) gi++;
    now.instance[now.instances++] =
        (struct instance){ gpu, gi, (int)id, (int)place->start, (int)place->size, -1 };
    keep_instances();
    *made = &gi_handles[gpu][gi];
    return OK;
}
int nvmlGpuInstanceDestroy(void *handle) {
    ON_GI(handle);
    if (it->ci >= 0 || now.gpu[gpu].in_use == gi) return IN_USE;
    *it = now.instance[--now.instances];
    keep_instances();
    return OK;
}
int nvmlDeviceGetGpuInstances(void *handle, unsigned id, void **room, unsigned *count) {
    ON_GPU(handle);
    unsigned found = 0;
    for (int i = 0; i < now.instances; i++)
        if (now.instance[i].gpu == gpu && now.instance[i].profile == (int)id && found < *count)
            room[found++] = &gi_handles[gpu][now.instance[i].gi];
    *count = found;
    return OK;
}
int nvmlDeviceGetGpuInstanceById(void *handle, unsigned gi, void **instance) {
    ON_GPU(handle);
    *instance = &gi_handles[gpu][gi];
    return instance_of(gpu, (int)gi) ? OK : NOT_FOUND;
}
struct gi_info { void *device; unsigned id, profile; struct place place; };
int nvmlGpuInstanceGetInfo(void *handle, struct gi_info *info) {
    ON_GI(handle);
    info->id = (unsigned)gi, info->profile = (unsigned)it->profile;
    info->place = (struct place){ (unsigned)it->start, (unsigned)it->size };
    return OK;
}

/* Compute instances: the stub has one at most in each GPU instance, with all of its slices. */
struct ci_info { unsigned id, slices, instances, rest[6]; };
struct ci_info_v2 { unsigned version; struct ci_info info; char name[96]; };
static const unsigned CI_SLICES[] = { 1, 2, 3, 4, 7 };

int nvmlGpuInstanceGetComputeInstanceProfileInfo(void *handle, unsigned kind, unsigned engine,
                                                 struct ci_info *info) {
    ON_GI(handle);
    if (engine || kind >= 5 || (int)CI_SLICES[kind] > profile_by(it->profile)->compute)
        return NOT_SUPPORTED;
    *info = (struct ci_info){ .id = kind, .slices = CI_SLICES[kind], .instances = 1 };
    return OK;
}
#ifndef OLD_DRIVER
int nvmlGpuInstanceGetComputeInstanceProfileInfoV(void *handle, unsigned kind, unsigned engine,
                                                  struct ci_info_v2 *info) {
    if (info->version != 0x02000088) return VERSION;
    return nvmlGpuInstanceGetComputeInstanceProfileInfo(handle, kind, engine, &info->info);
}
#endif
int nvmlGpuInstanceCreateComputeInstance(void *handle, unsigned kind, void **made) {
    ON_GI(handle);
    if (it->ci >= 0 || (int)CI_SLICES[kind] != profile_by(it->profile)->compute) return NO_ROOM;
    it->ci = 0;
    keep_instances();
    *made = &ci_handles[gpu][gi];
    return OK;
}
int nvmlGpuInstanceGetComputeInstances(void *handle, unsigned kind, void **room, unsigned *count) {
    ON_GI(handle);
    int there = it->ci >= 0 && (int)CI_SLICES[kind] == profile_by(it->profile)->compute;
    if (there) room[0] = &ci_handles[gpu][gi];
    *count = (unsigned)there;
    return OK;
}
int nvmlGpuInstanceGetComputeInstanceById(void *handle, unsigned ci, void **instance) {
    ON_GI(handle);
    *instance = &ci_handles[gpu][gi];
    return it->ci == (int)ci ? OK : NOT_FOUND;
}
int nvmlComputeInstanceDestroy(void *handle) {
    int gpu = 0, gi = 0;
    if (!found(handle, ci_handles, &gpu, &gi)) return INVALID;
    int code = enter(__func__, gpu);
    if (code) return code;
    struct instance *it = instance_of(gpu, gi);
    if (!it) return NOT_FOUND;
    if (now.gpu[gpu].in_use == gi) return IN_USE;
    it->ci = -1;
    keep_instances();
    return OK;
}

/* MIG devices, by index among those of a GPU. */
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    ON_GPU(handle);
    *count = 7;
    return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **device) {
    ON_GPU(handle);
    for (int i = 0; i < now.instances; i++)
        if (now.instance[i].gpu == gpu && now.instance[i].ci >= 0 && !index--) {
            *device = &devices[gpu][now.instance[i].gi];
            return OK;
        }
    return NOT_FOUND;
}
int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *id) {
    int gpu, gi, ci;
    if (!mig_device_of(handle, &gpu, &gi, &ci)) return INVALID;
    *id = (unsigned)gi;
    return enter(__func__, gpu);
}
int nvmlDeviceGetComputeInstanceId(void *handle, unsigned *id) {
    int gpu, gi, ci;
    if (!mig_device_of(handle, &gpu, &gi, &ci)) return INVALID;
    *id = 0;
    return enter(__func__, gpu);
}
struct attributes { unsigned sms, copy, dec, enc, jpeg, ofa, gi_slices, ci_slices; unsigned long long mib; };
int nvmlDeviceGetAttributes_v2(void *handle, struct attributes *told) {
    ON_GPU(handle);
    int of, gi, ci;
    if (!mig_device_of(handle, &of, &gi, &ci)) return INVALID;
    struct instance *it = instance_of(of, gi);
    if (!it) return NOT_FOUND;
    unsigned slices = (unsigned)profile_by(it->profile)->compute;
    *told = (struct attributes){ .sms = slices * 16, .copy = slices, .dec = slices, .gi_slices = slices,
                                 .ci_slices = slices, .mib = memory_of(of, it->size) };
    return OK;
}
