/* What the stub of NVML pretends. Every call reads it anew from the file that $NVMLSTUB names, so
 * that a test changes the machine by rewriting a text file. One statement a line:
 *
 *   driver VERSION | cuda NUMBER | init CODE      code: nvmlReturn_t that nvmlInit returns
 *   hang FUNCTION                                 the call never returns
 *   fail FUNCTION GPU CODE                        the call returns CODE for this GPU (-1: for all)
 *   gpu INDEX UUID PCI DEVICE_ID MEMORY_MIB NAME…
 *   set INDEX KEY NUMBER                          keys: see `struct gpu`
 *   cluster INDEX HEX                             UUID of the NVLink cluster, 32 digits
 *   link INDEX LINK ACTIVE TYPE PCI               type: 0 GPU, 2 switch; PCI "-": not told
 *   xid SERIAL INDEX CODE GI CI                   an event: told once, with growing serials
 *   event SERIAL INDEX TYPE DATA                  likewise, of any type
 *   system SERIAL TYPE                            likewise, of the driver: 1 unbind, 2 bind
 *
 * MIG instances outlive a process: they are lines "GPU GI PROFILE START SIZE CI" in $NVMLSTUB.mig,
 * CI -1 where there is no compute instance. "set INDEX in_use GI" makes one undestroyable. */
#ifndef MUSTER_NVMLSTUB_STATE_H
#define MUSTER_NVMLSTUB_STATE_H

#define MOST_GPUS 16
#define MOST_LINKS 36
#define MOST_EVENTS 64
#define MOST_RULES 16
#define MOST_INSTANCES 128

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10,
       LOST = 15, RESET = 16, IN_USE = 19, NO_ROOM = 23, VERSION = 25 };

struct link { int there, active, type; char pci[32]; };

struct gpu {
    int there, index;
    char uuid[96], pci[32], name[96], cluster[33];
    unsigned device_id;
    unsigned long long memory_mib;
    struct link links[MOST_LINKS];
    int minor, major, cc_minor, lost, temperature, slowdown, margin, slow_tlimit, utilisation, used, reserved;
    int power, limit, sm_clock, sbe, dbe, remapped, remap_pending, remap_failed, recovery;
    int mig_capable, mig, mig_pending, mig_needs_reset, places_told, in_use;
    int fabric, fabric_status, clique, mask, summary;
};

struct event { int serial, gpu; unsigned long long type, data; unsigned gi, ci; };
struct rule { char function[64]; int gpu, code; };
struct instance { int gpu, gi, profile, start, size, ci; };

struct state {
    char driver[80];
    int cuda, init, gpus, events, system_events, fails, hangs, instances;
    struct gpu gpu[MOST_GPUS];
    struct event event[MOST_EVENTS], system_event[MOST_EVENTS];
    struct rule fail[MOST_RULES], hang[MOST_RULES];
    struct instance instance[MOST_INSTANCES];
};

extern struct state now;

/* Read the state; hang if this function is to; return the code that it is to return. */
int enter(const char *function, int gpu);
/* Add a statement, as when a call changed the machine. */
int append_state(const char *line);
/* Write the MIG instances. */
void keep_instances(void);

#endif
