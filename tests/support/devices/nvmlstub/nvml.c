/* A libnvidia-ml.so.1 without a GPU: the calls that the plugin's child makes, over state.h.
 * Structures are laid out as the ctypes of nvidia-ml-py lay them out. MIG devices are mig.c's.
 * OLD_DRIVER leaves out what came with later drivers, so that their symbols are missing. */
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A handle is a pointer to a byte: of the GPU, or of a MIG device, which mig.c knows. */
static char gpu_handles[MOST_GPUS];
extern int mig_device_of(void *handle, int *gpu, int *gi, int *ci);
extern int mig_uuid_of(int gpu, int gi, int ci, char *uuid, unsigned size);
extern void *mig_device_by_uuid(const char *uuid);

void *gpu_handle(int index) { return &gpu_handles[index]; }

int gpu_index(void *handle) {
    int gpu, gi, ci;
    if (mig_device_of(handle, &gpu, &gi, &ci)) return gpu;
    return (int)((char *)handle - gpu_handles);
}

#define ON(handle) \
    int index = gpu_index(handle); \
    int code = enter(__func__, index); \
    struct gpu *gpu = &now.gpu[index]; \
    (void)gpu; \
    if (code) return code

const char *nvmlErrorString(int code) {
    static char said[40];
    snprintf(said, sizeof said, code == IN_USE ? "In use by another client" : "NVML error %d", code);
    return said;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = enter(__func__, -1);
    return code ? code : now.init;
}
int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    int code = enter(__func__, -1);
    snprintf(version, size, "%s", now.driver);
    return code;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    int code = enter(__func__, -1);
    *version = now.cuda;
    return code;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = enter(__func__, -1);
    *count = (unsigned)now.gpus;
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    int code = enter(__func__, (int)index);
    *handle = gpu_handle((int)index);
    return code;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    int code = enter(__func__, -1);
    if (code) return code;
    for (int i = 0; i < now.gpus; i++)
        if (!strcmp(now.gpu[i].uuid, uuid)) { *handle = gpu_handle(i); return now.gpu[i].lost; }
    *handle = mig_device_by_uuid(uuid);
    return *handle ? OK : NOT_FOUND;
}
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size) {
    ON(handle);
    int of, gi, ci;
    if (mig_device_of(handle, &of, &gi, &ci)) return mig_uuid_of(of, gi, ci, uuid, size);
    snprintf(uuid, size, "%s", gpu->uuid);
    return OK;
}
int nvmlDeviceGetName(void *handle, char *name, unsigned size) {
    ON(handle);
    snprintf(name, size, "%s", gpu->name);
    return OK;
}
int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) {
    ON(handle);
    *minor = (unsigned)gpu->minor;
    return OK;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    ON(handle);
    *major = gpu->major, *minor = gpu->cc_minor;
    return OK;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *pci) {
    ON(handle);
    memset(pci, 0, sizeof *pci);
    pci->id = gpu->device_id;
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", gpu->pci);
    return OK;
}

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
static const unsigned long long MIB = 1024 * 1024;

int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory) {
    ON(handle);
    memory->total = gpu->memory_mib * MIB;
    memory->used = (unsigned long long)(gpu->used + gpu->reserved) * MIB;
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *degrees) {
    ON(handle);
    *degrees = (unsigned)gpu->temperature;
    return sensor ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetTemperatureThreshold(void *handle, int kind, unsigned *degrees) {
    ON(handle);
    *degrees = (unsigned)gpu->slowdown;
    return kind == 1 && gpu->slowdown ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) {
    ON(handle);
    rates[0] = (unsigned)gpu->utilisation, rates[1] = 0;
    return gpu->mig ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    ON(handle);
    *milliwatts = (unsigned)gpu->power;
    return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts) {
    ON(handle);
    *milliwatts = (unsigned)gpu->limit;
    return OK;
}
int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *mhz) {
    ON(handle);
    *mhz = (unsigned)gpu->sm_clock;
    return kind == 1 ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int span, unsigned long long *count) {
    ON(handle);
    *count = (unsigned long long)(kind ? gpu->dbe : gpu->sbe);
    return kind == !span ? OK : NOT_SUPPORTED; /* uncorrected volatile, corrected aggregate */
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *active) {
    ON(handle);
    if (link >= MOST_LINKS || !gpu->links[link].there) return INVALID;
    *active = (unsigned)gpu->links[link].active;
    return OK;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, struct pci *pci) {
    ON(handle);
    if (!strcmp(gpu->links[link].pci, "-")) return NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", gpu->links[link].pci);
    return OK;
}

/* Events: told once to a set, and none from before its GPUs were registered. */
static int told_serial = -1;
static int registered[MOST_GPUS];

static int latest(const struct event *events, int count) {
    int serial = 0;
    for (int i = 0; i < count; i++)
        if (events[i].serial > serial) serial = events[i].serial;
    return serial;
}

struct told { void *device; unsigned long long type, data; unsigned gi, ci; };

int nvmlEventSetCreate(void **set) {
    *set = &told_serial;
    memset(registered, 0, sizeof registered);
    return enter(__func__, -1);
}
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceGetSupportedEventTypes(void *handle, unsigned long long *types) {
    ON(handle);
    *types = 8 | 0x4000 | 0x8000;
    return OK;
}
int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, void *set) {
    ON(handle);
    (void)types, (void)set;
    registered[index] = 1;
    if (told_serial < 0) told_serial = latest(now.event, now.events);
    return OK;
}
int nvmlEventSetWait_v2(void *set, struct told *told, unsigned milliseconds) {
    (void)set;
    for (unsigned waited = 0;; waited += 10) {
        int code = enter(__func__, -1);
        if (code) return code;
        for (int i = 0; i < now.gpus; i++)
            if (registered[i] && now.gpu[i].lost) return now.gpu[i].lost;
        for (int i = 0; i < now.events; i++) {
            struct event *event = &now.event[i];
            if (event->serial <= told_serial || !registered[event->gpu]) continue;
            told_serial = event->serial;
            *told = (struct told){ gpu_handle(event->gpu), event->type, event->data, event->gi, event->ci };
            return OK;
        }
        if (waited >= milliseconds) break;
        usleep(10000);
    }
    return TIMEOUT;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *memory) {
    ON(handle);
    if (memory->version != 0x02000028) return VERSION;
    memory->total = gpu->memory_mib * MIB;
    memory->used = (unsigned long long)gpu->used * MIB;
    memory->reserved = (unsigned long long)gpu->reserved * MIB;
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *handle, unsigned link, int *type) {
    ON(handle);
    *type = gpu->links[link].type;
    return OK;
}
struct margin { unsigned version; int degrees; };
int nvmlDeviceGetMarginTemperature(void *handle, struct margin *margin) {
    ON(handle);
    margin->degrees = gpu->margin;
    return OK;
}
int nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed) {
    ON(handle);
    *corrected = 0, *uncorrected = (unsigned)gpu->remapped;
    *pending = (unsigned)gpu->remap_pending, *failed = (unsigned)gpu->remap_failed;
    return OK;
}
struct field {
    unsigned id, scope;
    long long stamp, latency;
    int type, code;
    union { double d; int i; unsigned long long ull; } value;
};
int nvmlDeviceGetFieldValues(void *handle, int count, struct field *fields) {
    ON(handle);
    for (int i = 0; i < count; i++) {
        int limit = fields[i].id == 194;
        fields[i].code = limit ? (gpu->slow_tlimit ? OK : NOT_SUPPORTED)
                       : fields[i].id == 230 && gpu->recovery >= 0 ? OK : NOT_SUPPORTED;
        fields[i].value.i = limit ? gpu->slow_tlimit : gpu->recovery;
    }
    return OK;
}
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned mask;
    unsigned char summary;
};
int nvmlDeviceGetGpuFabricInfoV(void *handle, struct fabric *fabric) {
    ON(handle);
    if (fabric->version != 0x02000024 && (fabric->version != 0x03000028 || !gpu->summary))
        return VERSION;
    for (unsigned i = 0, byte = 0; i < 16 && gpu->cluster[0]; i++) {
        sscanf(gpu->cluster + 2 * i, "%2x", &byte);
        fabric->cluster[i] = (unsigned char)byte;
    }
    fabric->status = gpu->fabric_status, fabric->clique = (unsigned)gpu->clique;
    fabric->state = (unsigned char)gpu->fabric, fabric->mask = (unsigned)gpu->mask;
    if (fabric->version == 0x03000028) fabric->summary = (unsigned char)gpu->summary;
    return OK;
}

static int told_system = -1;
struct system_set { unsigned version; void *set; };
struct system_register { unsigned version; unsigned long long types; void *set; };
struct system_told { unsigned long long type; unsigned gpu; };
struct system_wait {
    unsigned version, milliseconds;
    void *set;
    struct system_told *data;
    unsigned size, count;
};
int nvmlSystemEventSetCreate(struct system_set *request) {
    request->set = &told_system;
    return enter(__func__, -1);
}
int nvmlSystemEventSetFree(struct system_set *request) { (void)request; return OK; }
int nvmlSystemRegisterEvents(struct system_register *request) {
    (void)request;
    int code = enter(__func__, -1);
    told_system = latest(now.system_event, now.system_events);
    return code;
}
int nvmlSystemEventSetWait(struct system_wait *request) {
    int code = enter(__func__, -1);
    if (code) return code;
    request->count = 0;
    for (int i = 0; i < now.system_events && request->count < request->size; i++)
        if (now.system_event[i].serial > told_system)
            request->data[request->count++] = (struct system_told){ now.system_event[i].type, 0 };
    told_system = latest(now.system_event, now.system_events);
    return request->count ? OK : TIMEOUT;
}
#endif
