/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * logind and PID 1 of one machine, as far as a shutdown of it touches one service:
 *
 *      UP --announced (logind)--> DELAY --no inhibitor left, or InhibitDelayMaxSec--> STOPPING --unit
 * ended--> OFF |                           +--cancelled--> UP                                  ^
 *       +--past logind (systemctl start poweroff.target, signals to PID 1)--------------+
 *
 * In DELAY PreparingForShutdown is true and SystemState still "running"; in STOPPING the unit gets SIGTERM,
 * is killed when its stop timed out (unless it extends that), and when the job of the target did. New
 * inhibitors are refused from DELAY on. Inhibitors are pipes, the store of descriptors holds copies, as the
 * real ones do. Measured: systemd 252.
 *
 * What runs in the slices of pods is what the fake cluster's kubelet of that node runs, if the machine was
 * told of it.
 */

#include "bus.h"
#include "fake-cluster.h"

typedef enum FakePowerPhase {
        FAKE_POWER_UP,
        FAKE_POWER_DELAY,
        FAKE_POWER_STOPPING,
        FAKE_POWER_OFF
} FakePowerPhase;

typedef struct FakePowerHooks {
        void (*on_sigterm)(void *userdata); /* the unit is being stopped */
        void (*on_sigkill)(void *userdata); /* it took too long */
        void (*on_off)(void *userdata);     /* the machine is off */
        void (*on_begun)(void *userdata);   /* its shutdown begins, whoever told it; may be NULL */
        void (*on_told)(void *userdata);    /* somebody on its bus tells it to reboot; may be NULL */
        void *userdata;
} FakePowerHooks;

typedef struct FakePowerLimits {
        usec_t inhibit_delay_usec, job_timeout_usec, stop_timeout_usec;
} FakePowerLimits;

typedef struct FakePower FakePower;

/* loop: the world's. As the distribution has it: 5 s, 30 min, 90 s. */
FakePower *fake_power_new(Loop *loop, const FakePowerHooks *hooks);
FakePower *fake_power_free(FakePower *p); /* no bus of it may be left */
void fake_power_set_limits(FakePower *p, const FakePowerLimits *l);
void fake_power_set_kubelet_inhibits(FakePower *p, bool inhibits);
void fake_power_set_logind(FakePower *p, bool there);
/* logind is there, and does not answer in time what it is asked from now on; its signals still come. */
void fake_power_set_logind_silent(FakePower *p, bool silent);
/* So is PID 1. */
void fake_power_set_pid1_silent(FakePower *p, bool silent);
/* logind of systemd 255 and newer tells the kind of a shutdown. */
void fake_power_set_metadata(FakePower *p, bool tells);

/* Its kubelet's pods, each a slice (cgroup driver "systemd"); cluster NULL: there are no such slices (driver
 * "cgroupfs"). */
void fake_power_set_pods(FakePower *p, FakeCluster *cluster, const char *node);
/* PID 1 sends UnitRemoved, or does not (an empty scope of cgroup v1 may stay). */
void fake_power_set_unit_signals(FakePower *p, bool sends);

/* The system bus as one process sees it; bus_free() it after the process is gone. */
Bus *fake_power_bus(FakePower *p, Loop *loop);
/* Nothing is answered, and nothing heard; when it comes back, all who listen are told. */
void fake_power_set_bus(FakePower *p, bool there);

/* An answer to each call of a method, or to each Get of a property, instead of the usual one. */
typedef struct FakePowerAnswer {
        const char *what;       /* method or property; NULL: all answers are the usual ones */
        const char *object;     /* part of the object's path; NULL: any object */
        int unsent;             /* the call cannot even be sent: a negative errno */
        bool late;              /* no answer comes in time */
        int error;              /* the answer is this negative errno */
        const char *error_name; /* NULL: "" */
        const char *const *values; /* NULL-terminated; NULL: none */
} FakePowerAnswer;
/* From now on. The answer is borrowed; NULL: the usual ones. */
void fake_power_set_answer(FakePower *p, const FakePowerAnswer *a);
/* Number of calls of that method, or Gets of that property, so far. */
unsigned fake_power_n_calls(const FakePower *p, const char *what);

/* What the unit's process says to its manager, and Env's store of descriptors (userdata is the FakePower).
 */
void fake_power_notify(FakePower *p, const char *text);
int fake_power_store_fd(const char *name, int fd, void *power);
int fake_power_take_fd(const char *name, void *power);
void fake_power_forget_fd(const char *name, void *power);
/* Its process runs; it has ended. restarts: the manager starts it again, and keeps its descriptors. */
void fake_power_unit_started(FakePower *p);
void fake_power_unit_ended(FakePower *p, bool restarts);

/* A call to the object that the unit's process publishes, by root; and one of its properties (free it).
 * -EHOSTUNREACH, NULL: there is none. What its signal has said, each with a space behind it. Another process reaches it by
 * its own fake_power_bus(), too: methods, GetAll, and its signals. */
int fake_power_call_unit(FakePower *p, const char *method);
char *fake_power_get_unit(FakePower *p, const char *property);
const char *fake_power_emitted(const FakePower *p);
/* Number of times that its properties were announced as changed, with or without a signal. */
unsigned fake_power_n_emitted(const FakePower *p);
/* Message of the last call by fake_power_call_unit() that was refused; "": the last call was not. */
const char *fake_power_refusal(const FakePower *p);

/* kind: "poweroff", "reboot". Refused (false) unless the machine is up. */
bool fake_power_shutdown(FakePower *p, const char *kind, bool announced);
/* `shutdown -r +N`: what ScheduledShutdown says from now on (kind NULL: nothing); wall clock. It begins when the test says. */
void fake_power_schedule(FakePower *p, const char *kind, usec_t at_usec);
/* Only in DELAY. */
bool fake_power_cancel(FakePower *p);
/* Off, or broken down, and up again: without descriptors and inhibitors. */
void fake_power_boot(FakePower *p);

FakePowerPhase fake_power_phase(const FakePower *p);
bool fake_power_is_inhibited(const FakePower *p);
/* logind closes its ends of all inhibitors, and holds up nothing for them any more. */
void fake_power_forget_inhibitors(FakePower *p);
/* loop_now() at which the last shutdown began, and the machine was off; USEC_INFINITY: not yet. */
usec_t fake_power_began(const FakePower *p);
usec_t fake_power_off(const FakePower *p);
/* The unit was killed because its stop, or the target's job, took too long. */
bool fake_power_was_forced(const FakePower *p);
