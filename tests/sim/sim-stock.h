/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machines that the cloud of a simulated world can launch, and the orders for them: one for each op id
 * that the command of provider exec (sim-exec.h) was given with "launch". An order draws its own fate:
 *
 *      the request    done at once, with or without the name of the machine; done up to nine minutes later,
 *                     and answered "accepted" or "unknown"; refused some times; without capacity for a
 *                     while, or for ever
 *      the machine    joins; joins in another zone; joins with startup taints, which go later; never joins;
 *                     vanishes before it joins
 *
 * A machine is "terminated" until it is launched. Its Node has a kubelet and no agent. The same op id never
 * makes a second machine, and "find" answers what is true at that moment.
 */

#include "sim-world.h"

#define SIM_STARTUP_TAINT "sim.vesper.sh/starting"

typedef struct SimStock SimStock;

typedef enum SimOrderFate {
        SIM_ORDER_DONE,
        SIM_ORDER_LATE,
        SIM_ORDER_REFUSED,
        SIM_ORDER_NO_CAPACITY,
        _SIM_ORDER_FATE_MAX,
} SimOrderFate;

typedef enum SimMachineFate {
        SIM_MACHINE_JOINS,
        SIM_MACHINE_TAINTED,
        SIM_MACHINE_STAYS_AWAY,
        SIM_MACHINE_VANISHES,
        _SIM_MACHINE_FATE_MAX,
} SimMachineFate;

struct SimOrder {
        SimStock *stock;
        char *op_id;
        SimOrderFate fate;
        SimMachineFate machine_fate;
        unsigned n_refusals;     /* that are left */
        usec_t capacity_usec;    /* when there is capacity; USEC_INFINITY: never */
        SimMachine *machine;     /* NULL: not launched yet */
        Timer *launch, *next;    /* the machine is launched; what befalls it next */
        bool is_withheld;        /* an answer was that nothing was launched */
};

/* The machines of the world from this one on are the stock. */
SimStock *sim_stock_new(SimWorld *w, size_t first);
SimStock *sim_stock_free(SimStock *s);

/* Carries out one run of the command, and returns what it prints. */
char *sim_stock_launch(SimStock *s, const cJSON *input);
char *sim_stock_find(SimStock *s, const cJSON *input);
/* Nobody has ever launched this machine, and the world did not begin with it. */
bool sim_stock_has(const SimStock *s, const SimMachine *m);
/* From now on every new order is carried out at once, and its machine joins. */
void sim_stock_stop_troubles(SimStock *s);

size_t sim_stock_n_orders(const SimStock *s);
const SimOrder *sim_stock_order(const SimStock *s, size_t i);
